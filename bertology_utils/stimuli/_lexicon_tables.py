"""The word tables behind :mod:`bertology_utils.stimuli.lexicon`.

Every form was chosen so that it is a single WordPiece of ``bert-base-uncased``
(``tests/test_stimuli_lexicon.py`` checks this against the vocabulary).  Verbs whose third person
singular is not one piece ("admires", "forgets", "swims") were left out, because agreement tests
need both members of the pair at one mask.
"""

# kind[.gender] | singular/plural ...   (one form: a mass noun)
NOUNS = """
person.m | boy/boys man/men king/kings prince/princes father/fathers brother/brothers son/sons
person.m | uncle/uncles husband/husbands actor/actors gentleman/gentlemen priest/priests
person.m | monk/monks knight/knights
person.f | girl/girls woman/women queen/queens mother/mothers sister/sisters daughter/daughters
person.f | wife/wives actress/actresses lady/ladies nun/nuns witch/witches widow/widows
person | child/children teacher/teachers doctor/doctors student/students farmer/farmers
person | writer/writers artist/artists lawyer/lawyers soldier/soldiers officer/officers
person | player/players driver/drivers singer/singers leader/leaders neighbor/neighbors
person | friend/friends guest/guests customer/customers visitor/visitors nurse/nurses judge/judges
person | manager/managers author/authors pilot/pilots scientist/scientists engineer/engineers
person | worker/workers senator/senators minister/ministers banker/bankers dancer/dancers
person | sailor/sailors traveler/travelers thief/thieves poet/poets guard/guards chef/chefs
person | tourist/tourists hunter/hunters editor/editors owner/owners journalist/journalists
person | passenger/passengers musician/musicians scholar/scholars critic/critics
person | director/directors detective/detectives captain/captains clerk/clerks servant/servants
person | prisoner/prisoners politician/politicians hero/heroes
animal | dog/dogs cat/cats horse/horses bird/birds cow/cows pig/pigs mouse/mice wolf/wolves
animal | bear/bears lion/lions rabbit/rabbits duck/ducks snake/snakes monkey/monkeys
animal | elephant/elephants fox/foxes goat/goats tiger/tigers goose/geese frog/frogs
food | apple/apples cake/cakes egg/eggs sandwich/sandwiches potato/potatoes cookie/cookies
food | tomato/tomatoes banana/bananas bread soup meat cheese rice
drink | water milk tea coffee wine beer juice
document | book/books letter/letters story/stories report/reports poem/poems
document | newspaper/newspapers magazine/magazines article/articles novel/novels
document | message/messages
object | key/keys cup/cups box/boxes bag/bags ball/balls lamp/lamps bottle/bottles
object | picture/pictures knife/knives phone/phones camera/cameras clock/clocks ring/rings
object | coin/coins plate/plates basket/baskets gift/gifts toy/toys flag/flags candle/candles
object | ticket/tickets
clothing | hat/hats coat/coats shirt/shirts shoe/shoes
furniture | table/tables chair/chairs bed/beds shelf/shelves door/doors window/windows
furniture | mirror/mirrors cabinet/cabinets
building | house/houses school/schools church/churches hospital/hospitals office/offices
building | museum/museums hotel/hotels library/libraries station/stations shop/shops store/stores
building | castle/castles tower/towers bridge/bridges factory/factories farm/farms
building | theater/theaters palace/palaces temple/temples prison/prisons airport/airports
building | restaurant/restaurants
place | garden/gardens park/parks street/streets road/roads river/rivers lake/lakes
place | forest/forests field/fields hill/hills mountain/mountains beach/beaches village/villages
place | city/cities town/towns island/islands valley/valleys desert/deserts
vehicle | car/cars bus/buses truck/trucks boat/boats ship/ships train/trains plane/planes
vehicle | bicycle/bicycles taxi/taxis
plant | tree/trees flower/flowers bush/bushes rose/roses
abstract | idea/ideas plan/plans problem/problems question/questions answer/answers rule/rules
abstract | law/laws decision/decisions theory/theories secret/secrets lesson/lessons
abstract | mistake/mistakes
event | game/games party/parties war/wars storm/storms concert/concerts fire/fires
event | accident/accidents wedding/weddings election/elections battle/battles
event | festival/festivals trial/trials lecture/lectures
instrument | piano/pianos guitar/guitars drum/drums violin/violins
"""

# Nouns whose everyday locative is not "in".
LOCATIVES = {
    "on": "bridge farm street road hill mountain beach island table chair bed shelf bus train "
    "plane ship boat bicycle",
    "at": "station airport party concert wedding festival lecture trial",
    "near": "door window mirror tower river lake storm fire accident",
}

# lemma third past participle gerund | frame | subjects > objects   (- : form not used)
VERBS = """
sleep sleeps slept slept sleeping | intransitive | animate
laugh laughs laughed laughed laughing | intransitive | human
smile smiles smiled smiled smiling | intransitive | human
cry cries cried cried crying | intransitive | human
sing sings sang sung singing | intransitive | human
dance dances danced danced dancing | intransitive | human
shout shouts shouted shouted shouting | intransitive | human
run runs ran run running | intransitive | animate
walk walks walked walked walking | intransitive | animate
jump jumps jumped jumped jumping | intransitive | animate
rest rests rested rested resting | intransitive | animate
wait waits waited waited waiting | intransitive | human
travel travels traveled traveled traveling | intransitive | human
arrive arrives arrived arrived arriving | intransitive | human vehicle
leave leaves left left leaving | intransitive | human vehicle
return returns returned returned returning | intransitive | human vehicle
fall falls fell fallen falling | intransitive | object
disappear disappears disappeared disappeared disappearing | intransitive | human animal object
die dies died died dying | intransitive | animal plant
grow grows grew grown growing | intransitive | plant
burn burns burned burned burning | intransitive | building plant
change changes changed changed changing | intransitive | abstract city town village
start starts started started starting | intransitive | event
begin begins began begun beginning | intransitive | event
stop stops stopped stopped stopping | intransitive | vehicle event
talk talks talked talked talking | oblique about | human > abstract event human
speak speaks spoke spoken speaking | oblique about | human > abstract event human
dream dreams dreamed dreamed dreaming | oblique about | human > event animal place
wait waits waited waited waiting | oblique for | human > human vehicle
work works worked worked working | oblique for | human > human
run runs ran run running | oblique to | animate > site
walk walks walked walked walking | oblique to | human > site
travel travels traveled traveled traveling | oblique to | human > place
return returns returned returned returning | oblique to | human > site
see sees saw seen - | transitive stative | animate > animate object vehicle site
hear hears heard heard - | transitive stative | human > human animal event vehicle
love loves loved loved - | transitive stative | human > human animal food drink place event
like likes liked liked - | transitive stative | human > human animal food drink document place
hate hates hated hated - | transitive stative | human > human animal event abstract food
know knows knew known - | transitive stative | human > human secret place
trust trusts trusted trusted - | transitive stative | human > human
fear fears feared feared - | transitive stative | human > animal event human
respect respects respected respected - | transitive stative | human > human law
need needs needed needed - | transitive stative | human > human object drink vehicle
own owns owned owned - | transitive stative | human > animal object vehicle building instrument
remember remembers remembered remembered - | transitive stative | human > human event place secret
help helps helped helped helping | transitive | human > human animal
follow follows followed followed following | transitive | animate > human animal vehicle
watch watches watched watched watching | transitive | animate > human animal event vehicle
visit visits visited visited visiting | transitive | human > human site
meet meets met met meeting | transitive | human > human
thank thanks thanked thanked thanking | transitive | human > human
call calls called called calling | transitive | human > human
invite invites invited invited inviting | transitive | human > human
protect protects protected protected protecting | transitive | human > human animal building
attack attacks attacked attacked attacking | transitive | animate > human animal
chase chases chased chased chasing | transitive | animate > human animal
warn warns warned warned warning | transitive | human > human
praise praises praised praised praising | transitive | human > human document
save saves saved saved saving | transitive | human > human animal
push pushes pushed pushed pushing | transitive | human > human vehicle furniture
kiss kisses kissed kissed kissing | transitive | human > human
find finds found found - | transitive | human > human animal object document
touch touches touched touched touching | transitive | human > animal object furniture plant
read reads read read reading | transitive | human > document
write writes wrote written writing | transitive | human > document
eat eats ate eaten eating | transitive | animate > food
drink drinks drank drunk drinking | transitive | human > drink
cook cooks cooked cooked cooking | transitive | human > food
carry carries carried carried carrying | transitive | human > object document food clothing
lift lifts lifted lifted lifting | transitive | human > object furniture
open opens opened opened opening | transitive | human > document box bottle bag door window
close closes closed closed closing | transitive | human > document box door window shop store
buy buys bought bought buying | transitive | human > food drink document object clothing vehicle
sell sells sold sold selling | transitive | human > food document object clothing vehicle
wear wears wore worn wearing | transitive | human > clothing
drive drives drove driven driving | transitive | human > car bus truck taxi
play plays played played playing | transitive | human > instrument
build builds built built building | transitive | human > building vehicle furniture
design designs designed designed designing | transitive | human > building clothing vehicle
paint paints painted painted painting | transitive | human > building furniture human
break breaks broke broken breaking | transitive | human > object furniture instrument
throw throws threw thrown throwing | transitive | human > object clothing
lose loses lost lost - | transitive | human > object clothing document
hide hides hid hidden hiding | transitive | human > object document
steal steals stole stolen stealing | transitive | human > object vehicle food
choose chooses chose chosen choosing | transitive | human > document clothing instrument
enter enters entered entered entering | transitive | human > building place
cross crosses crossed crossed crossing | transitive | human > street road river bridge field
discuss discusses discussed discussed discussing | transitive | human > abstract event document
describe describes described described describing | transitive | human > human animal event place
surprise surprises surprised surprised - | transitive | document event abstract human > human
scare scares scared scared - | transitive | animal storm fire war accident > human
shock shocks shocked shocked - | transitive | document event abstract > human
worry worries worried worried - | transitive | event abstract > human
destroy destroys destroyed destroyed destroying | transitive | storm fire war > site vehicle
hit hits hit hit - | transitive | human vehicle > human animal vehicle
say says said said - | clausal | human
think thinks thought thought - | clausal stative | human
believe believes believed believed - | clausal stative | human
hope hopes hoped hoped - | clausal stative | human
claim claims claimed claimed - | clausal | human
know knows knew known - | clausal stative | human
hear hears heard heard - | clausal stative | human
explain explains explained explained - | clausal | human
remember remembers remembered remembered - | clausal stative | human
notice notices noticed noticed - | clausal stative | human
give gives gave given giving | ditransitive | human > object document food drink clothing
send sends sent sent sending | ditransitive | human > document gift ticket flower
show shows showed shown showing | ditransitive | human > document object vehicle
offer offers offered offered offering | ditransitive | human > food drink gift ticket
sell sells sold sold selling | ditransitive | human > object vehicle clothing
bring brings brought brought bringing | ditransitive | human > object document food drink
want wants wanted wanted - | infinitival stative | human
need needs needed needed - | infinitival stative | human
try tries tried tried trying | infinitival | human
hope hopes hoped hoped hoping | infinitival | human
decide decides decided decided - | infinitival | human
refuse refuses refused refused - | infinitival | human
learn learns learned learned learning | infinitival | human
"""

# word | kinds it may describe ("!" : only before the noun, never after "is")
ADJECTIVES = """
happy | human
sad | human story
tired | human animal
angry | human animal
hungry | human animal
young | human animal plant
old | human animal object clothing furniture building vehicle plant document instrument city
tall | human building plant
rich | human
poor | human
famous | human document building place
brave | human animal
kind | human
sick | human animal
nervous | human
proud | human
busy | human street shop store station airport
friendly | human dog cat
strong | human animal tea coffee
quiet | human place library animal
careful | human
polite | human
lazy | human cat dog
honest | human answer
smart | human dog monkey
cruel | human law rule
lonely | human
jealous | human
clever | human plan idea
shy | human
generous | human
calm | human
new | object clothing furniture building vehicle document instrument rule law plan theory idea
small | animal object furniture building vehicle place plant food
big | animal object furniture building vehicle city tree party
large | animal object furniture building vehicle city tree
tiny | animal object
heavy | object furniture coat
expensive | object clothing furniture vehicle hotel restaurant instrument wine
cheap | object clothing hotel restaurant vehicle wine
dirty | object clothing street road river vehicle
red | object clothing furniture vehicle flower rose apple
blue | object clothing vehicle furniture
green | object clothing furniture
black | clothing animal vehicle object
white | clothing horse bird house flower
brown | animal shoe table
yellow | clothing flower taxi bird
beautiful | place flower building picture ring poem piano
empty | box bag bottle basket street cup cabinet
fresh | food
sweet | apple cake cookie wine banana
warm | food drink coat
cold | food drink
hot | food drink
delicious | food
fast | vehicle horse
wild | animal
important | document event abstract
simple | plan problem question answer idea rule story lesson
strange | story message event idea question dog
interesting | document idea question game lecture theory
difficult | question problem decision book lesson game
long | document street river war trial lecture concert
short | document river war trial lecture
terrible | event mistake idea
dangerous | animal street river forest game idea
safe | road city beach bridge street
popular | document festival restaurant beach park game
boring | lecture book
wooden | !bridge box table chair door house
golden | !ring coin key cup
ancient | !castle temple city bridge church
modern | !city museum hotel school
dark | street forest garden castle
narrow | street bridge road
"""

# word | role | tenses it fits (any if absent)
ADVERBS = """
quickly | manner
slowly | manner
quietly | manner
carefully | manner
loudly | sound
suddenly | manner
happily | manner
softly | sound
silently | manner
calmly | manner
angrily | sound
often | frequency
always | frequency
usually | frequency
sometimes | frequency
rarely | frequency
never | frequency
yesterday | time | past
recently | time | past
today | time | past future
tomorrow | time | future
soon | time | future
again | time | past future
here | place
there | place
very | degree
really | degree
so | degree
too | degree
"""

NAMES = {
    "m": "john james robert michael david peter paul thomas george henry daniel jack sam tom ben "
    "adam luke martin richard charles edward frank oliver william joseph",
    "f": "mary anna sarah emma alice jane julia laura lucy kate rachel maria susan helen elizabeth "
    "emily sophie claire linda nancy margaret ruth karen martha betty",
}

# Nouns that take their own complement: lemma | preposition | kinds
RELATIONAL = """
key | to | building vehicle door box cabinet
picture | of | human animal building place
door | of | building
window | of | building
owner | of | building vehicle animal
author | of | document
editor | of | newspaper magazine
manager | of | hotel shop store restaurant factory
director | of | museum school library theater
driver | of | car bus truck taxi
friend | of | human
leader | of | city village
captain | of | ship
book | about | human animal place event
story | about | human animal place event
article | about | human event place
report | about | event place
novel | about | human event
poem | about | place animal flower
lecture | about | event animal document
letter | from | human
message | from | human
gift | from | human
question | about | document event law
theory | about | event animal
rule | of | game
bottle | of | drink
cup | of | drink
basket | of | food
box | of | food object
plate | of | food
"""

# Nouns that "my" and "our" suit, beside objects and clothing.
OWNABLE = (
    "father brother son uncle husband mother sister daughter wife child friend neighbor teacher "
    "doctor lawyer dog cat horse house office school village town city garden car boat bicycle "
    "truck book letter story poem message piano guitar violin table bed chair farm store shop idea "
    "plan question answer secret mistake"
)
FAMILY = "father brother son uncle husband mother sister daughter wife"
