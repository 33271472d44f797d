"""Frames for ambiguous words: every line of a sense is a sentence with {one|of|several} fillers.

The word occurs exactly once in each sentence, in its base form.
"""

SENSES: dict[str, dict[str, str]] = {
    "bank": {
        "river": """
The {fishermen|children|hikers} sat on the grassy bank and watched the {boats|ducks|swans}.
After the {flood|storm}, the muddy bank of the {river|stream} collapsed into the water.
We {tied|moored} the canoe to a {tree|post} on the far bank.
{Willows|Reeds|Wild flowers} grew all along the bank of the quiet stream.
The otter climbed up the steep bank with a {fish|crab} in its mouth.
They {swam|waded} across and rested on the opposite bank until {noon|dark}.
The {crocodile|heron} waited without moving near the bank of the lake.
A narrow path follows the bank of the {canal|river} to the old {mill|bridge}.
""",
        "money": """
She opened a savings account at the {local|new} bank to earn {some|more} interest.
The {robbers|thieves} took the cash from the bank and fled in a {car|van}.
The bank refused to {lend|give} the company any {money|credit}.
He works as a {clerk|manager|lawyer} for a large bank in the city.
The {central|national} bank raised interest rates by half a {percent|point}.
You can {pay|change} your bills at any bank before {noon|Friday}.
My {wife|boss} asked the bank for a loan to buy a {house|shop}.
The bank charged him a fee because his {check|payment} was {late|refused}.
""",
    },
    "bat": {
        "animal": """
A {small|brown} bat flew out of the dark {cave|barn} at dusk.
The bat hung upside down from the {ceiling|branch} and slept all {day|morning}.
Like an {owl|insect}, the bat hunts at night and hides by day.
The bat caught a {moth|beetle} in the air above the {garden|lake}.
A {fruit|vampire} bat can find its way by {echoes|smell}.
The {scientist|girl} spread the wings of the sleeping bat to {measure|draw} them.
We were {scared|woken} when a bat fluttered into the {attic|bedroom}.
Every {evening|summer} a bat circled around the {street lamp|church tower}.
""",
        "sport": """
He swung the {wooden|heavy} bat and hit the ball over the {fence|stands}.
The {batter|player} dropped his bat and ran to first base.
She bought a new {baseball|cricket} bat and a leather {glove|ball} for the team.
The bat {broke|cracked} when it met the fast ball.
{Grip|Hold} the bat with both hands and keep your eye on the {pitcher|ball}.
The coach {lent|gave} him an aluminum bat for the {game|final}.
He walked up to the plate with a bat on his {shoulder|back}.
The champion signed the bat that had {won|decided} the {match|series}.
""",
    },
    "bark": {
        "tree": """
The bark of the old {oak|pine|birch} was rough and {gray|cracked}.
{Deer|Goats|Beavers} had stripped the bark from the young trees.
{Moss|Ivy} covered the bark on the north side of the trunk.
The {villagers|farmers} made {ropes|baskets} from the inner bark of the tree.
He carved their {names|initials} into the smooth bark of a {beech|maple}.
{Beetles|Insects} live under the bark and eat the soft wood.
The {doctor|healer} boiled the bark and leaves into a bitter {tea|medicine}.
Birch bark {peels|curls} in thin white sheets.
""",
        "sound": """
The {loud|sudden} bark of the dog woke the whole {house|street}.
With an angry bark the {guard dog|terrier} ran toward the {gate|stranger}.
We heard a bark and then the {growl|whine} of a puppy behind the door.
The {seal|fox} answered with a short bark.
Her dog's bark is {deep|high} but he is friendly to {strangers|children}.
Every bark of the hound {echoed|rang} through the night.
One {sharp|single} bark from the shepherd's dog turned the {flock|sheep}.
The puppy gave a {happy|nervous} bark when its master came {home|back}.
""",
    },
    "spring": {
        "season": """
The {flowers|trees} bloom in early spring when the {snow|ice} melts.
{Last|Next} spring the farmers will have planted {corn|wheat}.
After a long winter, spring came {late|suddenly} to the {valley|north}.
The {birds|geese} return from the south every spring.
In the spring the days grow {longer|warmer} and the rain is {soft|frequent}.
They were married in the spring of that {year|decade}.
{April|May} is the loveliest month of spring.
Spring and {autumn|summer} are the best {seasons|times} to visit the {islands|city}.
""",
        "coil": """
The {metal|steel} spring inside the {clock|watch} broke.
A weak spring made the {mattress|sofa} sag in the middle.
The mechanic replaced the rear spring and the {brakes|shock absorber} of the {car|truck}.
Press the {lever|button} and the spring pushes the lid open.
The {toy|jack-in-the-box} jumped because a coiled spring was released.
The engineer {stretched|compressed} the spring to measure its {force|tension}.
A tiny spring holds the {pen|trigger} in place.
Wind the spring of the {music box|alarm clock} with this {key|handle}.
""",
    },
    "match": {
        "game": """
Our team {won|lost} the match by two {goals|points}.
The {tennis|chess|football} match lasted more than three hours.
Thousands of {fans|people} watched the match in the {stadium|rain}.
The referee stopped the match after a {fight|foul} between two players.
She scored twice in the final match of the {season|tournament}.
The {captain|goalkeeper} was injured early in the match.
Both sides played well, and the match ended in a {draw|tie}.
We bought tickets for the {opening|next} match of the World Cup.
""",
        "fire": """
He struck a match and {lit|held it to} the {candle|lamp}.
The match {burned|went out} before she could light the {stove|fire}.
{Strike|Light} a match so that we can see in the {cellar|dark}.
A single match can set the dry {grass|forest} on fire.
The {boy|soldier} lit his cigarette with the last match in the box.
She dropped the burning match on the {carpet|floor} when it reached her {fingers|hand}.
The smell of {gas|petrol} warned him not to light a match.
A wet match will not {burn|catch fire}.
""",
    },
    "plant": {
        "living": """
The plant needs {water|sunlight} and good soil to {grow|bloom}.
She {watered|cut} the green plant on the window {sill|ledge}.
A {rare|strange} plant with yellow flowers grows in the {desert|swamp}.
The {leaves|roots} of this plant are {poisonous|bitter}.
Without light the plant turned {pale|brown} and died.
The {gardener|botanist} collected seeds from the wild plant.
{Bees|Insects} carry pollen from plant to flower.
The tomato plant in the {garden|greenhouse} is covered with {fruit|blossoms}.
""",
        "factory": """
The {car|steel} plant employs three thousand workers.
The company will {close|sell} its chemical plant next year.
{Engineers|Inspectors} visited the nuclear plant after the accident.
The {workers|union} at the plant went on strike for higher {wages|pay}.
The power plant {burns|uses} coal to make electricity.
They built a new assembly plant near the {highway|port}.
Smoke rose from the chimneys of the cement plant all {day|week}.
The manager of the bottling plant {hired|fired} forty {men|women}.
""",
    },
    "crane": {
        "bird": """
A white crane stood on one leg in the {marsh|shallow water}.
The crane spread its wings and flew over the {lake|rice fields}.
The nest of the crane held two {eggs|chicks}.
With its long beak the crane caught a {frog|fish}.
The {red-crowned|gray} crane dances before it mates.
Every winter the crane migrates {south|to Africa} with its young.
The {painter|poet} admired the long neck and feathers of the crane.
We heard the cry of a crane above the {reeds|wetland}.
""",
        "machine": """
The crane lifted the steel {beams|pipes} to the top of the {building|tower}.
A {tall|huge} crane unloaded the containers from the {ship|train}.
The operator of the crane lowered the {concrete|heavy} block slowly.
The crane on the construction site {fell|toppled} in the strong wind.
Workers used a crane to move the {engine|statue} onto a truck.
The harbor bought a new crane that can carry forty {tons|cars}.
The hook of the crane was {rusty|bent}.
They rented a crane to {raise|repair} the roof of the {stadium|church}.
""",
    },
    "star": {
        "sky": """
The {brightest|first} star in the sky appeared above the {hill|sea}.
The sun is a star of {medium|average} size.
{Astronomers|Scientists} discovered a planet that orbits a distant star.
The {sailors|shepherds} followed the north star at night.
Light from that star takes {ten|fifty} years to reach the earth.
When its fuel is gone, the star will {collapse|explode}.
She looked through the telescope at a {double|red} star.
A shooting star fell across the {dark|clear} sky.
""",
        "celebrity": """
The {movie|film} star signed {autographs|photographs} for her fans.
He became a {rock|pop} star at the age of twenty.
The {famous|young} star refused to talk to the reporters.
The star of the {show|series} earns a million dollars a year.
Everyone wanted a {picture|photo} with the football star.
The director found a new star for his next {film|play}.
The star arrived at the {premiere|hotel} in a black limousine.
Critics {praised|hated} the star of the new musical.
""",
    },
    "club": {
        "group": """
She joined the {chess|book|drama} club at school.
The members of the club meet every {Tuesday|month}.
The football club signed a new {striker|coach}.
He was elected {president|secretary} of the club by a large majority.
You must pay a fee to join the {golf|tennis} club.
The club {rules|dinner} changed when women were admitted.
Our club organizes {trips|concerts} for its younger members.
The oldest sailing club in the {city|country} has two hundred members.
""",
        "stick": """
The {giant|caveman} carried a heavy wooden club over his shoulder.
He struck the {wolf|robber} on the head with a club.
The guard raised his club and {hit|threatened} the prisoner.
The hunter killed the {snake|seal} with a club.
A {thick|short} club lay beside the body.
The ogre in the story swings a {huge|spiked} club.
The soldier's shield broke under the blow of the club.
With a stone {axe|knife} he cut a branch into a club to {defend himself|fight}.
The {policeman|warrior} dropped his club and {ran|knelt}.
""",
    },
    "ring": {
        "jewel": """
He gave her a {gold|diamond} ring on their wedding day.
She {lost|sold} the ring that her grandmother had left her.
The {jeweler|goldsmith} set a ruby in the silver ring.
The ring was too {small|tight} for her finger.
A {priest|bishop} placed the ring on the bride's hand.
The thief stole a pearl necklace and a ring from the {safe|bedroom}.
The king sealed the letter with his {signet|heavy} ring.
After the divorce he {threw away|kept} his wedding ring.
""",
        "arena": """
The boxer climbed into the ring and {raised|lifted} his gloves.
The two {fighters|wrestlers} faced each other in the ring.
The champion knocked his opponent out of the ring in the {first|final} round.
The referee stood in the middle of the ring and counted to {ten|eight}.
The crowd cheered when the {wrestler|boxer} entered the ring.
Blood dripped on the floor of the ring after the {fight|bout}.
The {elephants|acrobats} ran around the circus ring.
He spent twenty years in the ring before he {retired|lost his title}.
""",
    },
    "letter": {
        "mail": """
I {wrote|sent} a long letter to my {aunt|brother} in Canada.
The postman brought a letter with a {foreign|strange} stamp.
She {opened|burned} the letter and began to cry.
He received a letter of thanks from the {mayor|queen}.
The letter was lost in the {mail|post}.
Please answer my letter before the end of the {week|month}.
The soldier kept the last letter from his {wife|mother} in his pocket.
The editor printed an angry letter from a {reader|farmer}.
""",
        "alphabet": """
The first letter of the {word|name} is a capital.
{A|The} child learned to write the letter B at school.
The letter E is the most {common|frequent} in English.
Every sentence begins with a capital letter and ends with a {period|full stop}.
Which letter comes after {M|K} in the alphabet?
The {sign|poster} was missing its second letter.
Spell the {word|name} slowly, one letter at a time.
In this code each letter stands for a {number|symbol}.
The {printer|typist} forgot a letter in the title.
""",
    },
    "seal": {
        "animal": """
A {gray|young} seal lay on the rocks and warmed itself in the sun.
The seal dived under the {ice|waves} and came up with a fish.
The {polar bear|shark} caught the seal near the edge of the ice.
At the zoo a seal {balanced|threw} a ball on its nose.
The mother seal fed her pup on the {beach|shore}.
The {hunters|whalers} followed the seal for its fur.
We saw a seal swimming beside our {boat|kayak}.
The seal barked and slid into the {cold|green} sea.
""",
        "stamp": """
The king pressed his seal into the hot {wax|red wax}.
The letter bore the official seal of the {city|president}.
He broke the seal and {unfolded|read} the parchment.
The document is not valid without the royal seal and a {signature|date}.
The {notary|clerk} put his seal at the bottom of the contract.
The seal on the envelope was {broken|unbroken}.
The great seal of the state shows an {eagle|oak}.
A wax seal with a {lion|crown} closed the {charter|treaty}.
The {bishop|governor} kept his seal in a locked box.
""",
    },
    "nail": {
        "metal": """
He hammered a {long|rusty} nail into the wall.
Hang the {picture|mirror} on that nail above the {sofa|desk}.
The carpenter pulled the {bent|old} nail out of the board.
I stepped on a nail and it went through my {shoe|boot}.
The tire went flat because of a nail in the {road|street}.
The {coat|lantern} hung from a nail behind the door.
You need a hammer and a nail to {fix|repair} the fence.
A nail stuck out of the {plank|chair} and tore her dress.
""",
        "finger": """
She {bit|broke} the nail of her little finger.
The nurse cut the nail of the {baby's|patient's} big toe.
She painted each nail bright {red|pink}.
There was dirt under the nail of his {thumb|finger}.
The nail on my left thumb turned {black|blue} after the accident.
He filed the {sharp|broken} nail smooth before he played the guitar.
The doctor treated an infection under the {toe|finger} nail.
A healthy nail grows about {three|four} millimeters a month.
""",
    },
    "palm": {
        "tree": """
A {tall|single} palm stood on the white beach.
The {hotel|garden} was shaded by a palm and some {banana|orange} trees.
Coconuts fell from the palm during the {storm|night}.
The monkey climbed the palm to pick {dates|nuts}.
They rested under a palm near the {well|oasis}.
The leaves of the palm are used for {roofs|mats}.
The hurricane {bent|broke} every palm along the coast.
Oil is pressed from the {fruit|seeds} of this palm.
""",
        "hand": """
She held the {coin|key} in the palm of her hand.
The {stranger|fortune teller} read the lines in his palm.
He slapped the table with his open palm.
There was a {cut|scar} across the palm of his right hand.
She pressed her palm against the cold {glass|wall}.
The child put a {stone|shell} into my palm and closed my fingers.
His palm was {wet|damp} with sweat before the interview.
The {beggar|boy} stretched out his palm for some money.
""",
    },
    "organ": {
        "music": """
The organ {played|sounded} while the bride walked down the aisle.
He plays the organ in the {church|cathedral} every Sunday.
The choir sang and the organ filled the {church|hall} with music.
Bach wrote many {pieces|works} for the organ.
The pipes of the organ were {cleaned|repaired} last year.
She practices the {piano|flute} and the organ every day.
The organ has three keyboards and {two thousand|many} pipes.
The {congregation|priest} waited for the organ to begin the hymn.
""",
        "body": """
The heart is the organ that pumps blood through the {body|veins}.
The surgeon removed the {damaged|diseased} organ.
The liver is the largest organ {inside|in} the body.
The patient waited {months|years} for an organ transplant.
The skin is an organ that protects us from {germs|infection}.
The {disease|virus} attacks more than one organ.
Blood carries oxygen to every organ and {muscle|tissue}.
A kidney is the organ most often {donated|transplanted}.
The eye is the organ of {sight|vision}.
""",
    },
    "trunk": {
        "elephant": """
The elephant lifted the log with its trunk.
The {baby|young} elephant sprayed water from its trunk.
With its trunk the animal picked {leaves|fruit} from the tree.
The elephant curled its trunk around the {branch|keeper's arm}.
An elephant uses its trunk to {drink|smell|breathe}.
The zoo keeper fed peanuts into the trunk of the {huge|old} elephant.
The wounded elephant raised its trunk and {trumpeted|screamed}.
The trunk of the mammoth was covered with {hair|fur}.
The elephants greeted each other by touching trunk to {mouth|ear}.
""",
        "car": """
He put the {suitcases|bags} in the trunk of the car.
The spare tire is in the trunk under the {carpet|toolbox}.
She opened the trunk and took out the {groceries|golf clubs}.
The police found {drugs|money} in the trunk of his car.
The trunk of the taxi was too {small|full} for our luggage.
He slammed the trunk and got behind the {wheel|car}.
Keep a {blanket|shovel} in the trunk when you drive in winter.
A body was hidden in the trunk of the {stolen|black} sedan.
""",
    },
    "cell": {
        "biology": """
Every cell in the body contains the same {genes|DNA}.
The cell {divides|splits} into two daughter cells.
The virus enters the {blood|nerve} cell and copies itself.
Under the microscope she saw the wall and nucleus of a plant cell.
A red blood cell carries {oxygen|iron}.
The membrane lets water into the {cell|living cell}.
Proteins are made inside the cell by {tiny|small} ribosomes.
The {cancer|skin} cell grew faster than its neighbors.
The {biologist|scientist} stained the nucleus of the cell blue.
An egg is a single cell with a large {yolk|nucleus}.
""",
        "prison": """
The prisoner paced up and down in his cell.
The guard locked the door of the {cell|prison cell}.
He spent {ten|twenty} years in a cell without windows.
Two {convicts|murderers} escaped from their cell last night.
The cell was cold and had only a bed and a {bucket|bench}.
The jailer pushed a plate of {bread|soup} into the cell.
She shared her cell with another {inmate|prisoner}.
The police kept the suspect in a cell until {morning|his trial}.
The warden searched every cell for {weapons|drugs}.
The monk prayed and slept in a {bare|narrow} cell.
""",
    },
    "court": {
        "law": """
The court found the {man|company} guilty of fraud.
The {lawyer|witness} told the court that his client was innocent.
She took her landlord to court over the {rent|damage}.
The Supreme Court will hear the {case|appeal} in June.
The judge ordered silence in the court.
The court sentenced him to {five|ten} years in prison.
He must appear before the court on {Monday|Friday}.
The {jury|prosecutor} returned to the court with a question.
The court rejected the {claim|evidence} of the defense.
""",
        "sport": """
The players ran onto the {tennis|basketball} court.
The ball landed outside the court.
He hit a forehand across the court to win the {point|set}.
They rented a court to play {badminton|squash}.
The court was too wet to play {tennis|volleyball} after the rain.
She is quick on the court and has a strong {serve|backhand}.
The {coach|umpire} walked around the net to the other side of the court.
Our hotel has a pool and a clay court for {guests|beginners}.
The center passed the ball down the court to the {guard|forward}.
""",
    },
    "pupil": {
        "student": """
The teacher {praised|punished} the pupil for his homework.
She was the best pupil in the {class|school}.
A pupil raised his hand and asked a {question|favor}.
Each pupil must wear a {uniform|blue tie}.
The {new|young} pupil sat at the front of the classroom.
He was a pupil of the famous {violinist|painter}.
The pupil forgot his books at {home|school}.
The headmaster sent the lazy pupil to {detention|his parents}.
Every pupil passed the {exam|spelling test}.
""",
        "eye": """
The pupil of the eye {shrinks|closes} in bright light.
The doctor shone a lamp into her left pupil.
In the dark the pupil grows {wider|larger}.
A cat's pupil is a narrow {slit|line} in the sunlight.
The drug made his pupil {huge|tiny}.
The iris is the colored ring around the {pupil|black pupil}.
Light passes through the pupil and the lens {to|onto} the retina.
The {drops|medicine} widened the pupil so that the doctor could see the retina.
One pupil was larger than the other after the {injury|blow} to his head.
The optician measured the {pupil|width of the pupil} and the cornea.
""",
    },
    "key": {
        "lock": """
She turned the key in the {lock|door} and went in.
I lost the key to my {car|apartment}.
The {guard|porter} wore the key on a chain around his neck.
A rusty key opened the old {chest|gate}.
He hid the spare key under the {mat|flowerpot}.
The locksmith made a copy of the {key|brass key}.
Leave your room key at the hotel {desk|reception}.
The {thief|maid} had a key to the safe.
The key broke off in the {lock|ignition}.
""",
        "music": """
The song is written in the key of {C|G} major.
The singer asked the {pianist|band} to play in a lower key.
The symphony ends in a {minor|different} key.
The choir sang off key during the whole {hymn|concert}.
The melody moves to another key after the {chorus|second verse}.
{Mozart|Beethoven} chose a gloomy key for the slow movement.
The {violins|flutes} enter softly in the key of D.
The composer changed the key of the sonata from {major|minor}.
This tune is easier to {sing|play} in a higher key.
""",
    },
    "scale": {
        "weight": """
She stepped on the scale and had lost two {pounds|kilos}.
The {butcher|grocer} put the meat on the scale.
Weigh the flour on a kitchen scale before you {bake|mix} it.
The nurse laid the {baby|newborn} on the scale.
The scale showed that the {parcel|suitcase} was too heavy.
The jeweler weighed the {gold|stones} on a tiny scale.
The bathroom scale is {broken|wrong} by three pounds.
{Trucks|Farmers} stop at the scale to be weighed.
He looked at the number on the scale and decided to {diet|eat less}.
""",
        "music": """
The pupil played the {major|minor} scale on the piano.
She practices every scale before her {violin|singing} lesson.
The notes of the scale rise from C to the next C.
The {flute|clarinet} plays a descending scale in the second bar.
The melody uses only five notes of the scale.
He sang the scale with a {clear|shaky} voice.
A chromatic scale has twelve {tones|notes}.
The guitarist ran up the blues scale in his {solo|song}.
The teacher asked her to sing a {scale|slow scale} and a chord.
The organist warmed up with a {fast|loud} scale.
""",
    },
    "pitch": {
        "sound": """
The singer raised the pitch of her voice.
A violin has a higher pitch than a {cello|bass}.
The pitch of the {siren|whistle} fell as the train passed.
The musician tuned the string until the pitch was {right|perfect}.
Men speak at a lower pitch than {women|children}.
The {bell|drum} produced a note of low pitch.
He has perfect pitch and can name any {note|chord}.
The {choir|flute} drifted off pitch in the last verse.
Frequency determines the pitch of a {tone|sound}.
""",
        "field": """
The players left the muddy pitch at half time.
The {fans|supporters} ran onto the pitch after the final whistle.
Rain had made the {football|cricket} pitch very slippery.
The referee inspected the frozen pitch before the {match|game}.
The {goalkeeper|captain} was carried off the pitch with a broken leg.
The groundsman cut the grass on the {pitch|hockey pitch}.
He ran the length of the pitch and scored a {goal|try}.
The school has a swimming pool and a {rugby|soccer} pitch.
The two teams walked onto the pitch behind the {referee|band}.
""",
    },
    "port": {
        "harbor": """
The ship sailed into the {busy|small} port at dawn.
The sailors {drank|rested} in the port for a week.
{Hamburg|Rotterdam} is the largest port in the country.
The storm kept the fishing boats in port.
Cargo is unloaded at the port by {cranes|night}.
The navy blocked every port on the {coast|island}.
The captain steered for the nearest port to {repair|refuel} his ship.
The ferry leaves the port at {noon|six}.
Customs officers at the port searched the {vessel|containers}.
""",
        "wine": """
They drank a glass of port after {dinner|dessert}.
He offered his guests {port|old port} and a cigar.
The butler poured the port into crystal glasses.
A bottle of sweet port stood beside the {cheese|walnuts}.
The {colonel|bishop} preferred port to sherry.
Port is a strong red wine from {Portugal|the Douro}.
The cellar held forty barrels of vintage port.
She added a spoon of port to the {sauce|gravy}.
The old man sipped his port by the {fire|window}.
The {cook|chef} soaked the plums in port and sugar.
""",
    },
    "chest": {
        "body": """
He felt a sharp pain in his chest.
The doctor listened to the patient's chest.
The {bullet|arrow} hit the soldier in the chest.
She held the baby to her chest and {sang|wept}.
The man had a hairy chest and strong {arms|shoulders}.
His heart was beating in his chest like a drum.
The x-ray of her chest showed a {shadow|broken rib}.
The boxer crossed his arms over his chest.
A medal was pinned to the {general's|hero's} chest.
{Breathe|Cough} deeply so that your chest rises.
The {swimmer|runner} had a broad chest and long legs.
""",
        "box": """
The pirates buried the chest full of {gold|coins}.
She kept the blankets in a wooden chest at the foot of the bed.
The {sailor|merchant} locked his papers in an iron chest.
Inside the chest lay {old clothes|letters} and a rusty sword.
They carried the heavy chest up to the {attic|deck}.
The lid of the chest was carved with {flowers|dragons}.
He pushed the chest against the door.
The divers found a treasure chest in the {wreck|cave}.
The tools are kept in a {metal|large} chest in the garage.
""",
    },
    "board": {
        "wood": """
The carpenter sawed the {long|oak} board in half.
A loose board in the {floor|porch} creaked under his foot.
He nailed a board across the broken {window|door}.
The fence was missing a {board|rotten board}.
She cut the bread on a wooden board.
The workman carried a board on his shoulder.
The board was too {thin|short} to cover the hole.
They laid a board over the stream and walked across.
Paint each board with {oil|varnish} before you build the {shed|deck}.
The shelf is made from a single pine board.
""",
        "committee": """
The board of directors {elected|dismissed} the president.
She was appointed to the school board last {year|month}.
The company's board rejected the {offer|merger}.
The chairman asked the board to vote on the {plan|budget}.
Members of the board meet four times a year.
The board {approved|discussed} the annual report.
He resigned from the board after the {scandal|election}.
A seat on the hospital board is an honor.
The {bank's|museum's} board hired a new manager.
""",
    },
}
