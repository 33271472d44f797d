"""Word lists and frames behind :mod:`bertology_utils.stimuli.meaning`, written by hand."""

CATEGORIES = {
    "bird": "robin hawk crow pigeon eagle owl swan duck parrot raven",
    "fish": "salmon trout shark tuna cod carp herring bass pike",
    "tree": "pine oak elm maple willow palm cedar birch ash",
    "flower": "rose lily daisy orchid violet lotus",
    "tool": "hammer saw drill axe shovel spade",
    "vehicle": "car truck bus van taxi tractor train wagon",
    "building": "church hotel library museum castle hospital palace barn",
    "weapon": "sword rifle pistol spear dagger cannon bomb",
    "fruit": "peach pear cherry lemon banana grape plum",
    "vegetable": "carrot potato cabbage bean pea onion",
    "animal": "dog horse cow sheep goat wolf lion tiger bear",
    "insect": "fly bee ant beetle butterfly moth wasp",
    "instrument": "piano violin guitar drum flute trumpet cello harp",
}
OVERLAPPING = frozenset(
    frozenset(pair) for pair in (("tree", "fruit"), ("tree", "flower"), ("tool", "weapon"),
                                 ("bird", "animal"), ("fish", "animal"), ("insect", "animal"),
                                 ("fruit", "vegetable"), ("tool", "instrument"))
)  # fmt: skip

ROLE_FILLERS = """
The meal was so good that they left a tip for the _. | waiter | chef | robin
The sick child was examined by the _. | doctor | patient | carpet
He borrowed three novels and took them back to the _. | library | author | tractor
The thief was caught and taken away by the _. | police | victim | kettle
The letter arrived late because of the _. | mail | envelope | tiger
The bride said yes and kissed the _. | groom | priest | ladder
The pilot climbed into the _. | plane | airport | spoon
The mother put the baby to sleep in the _. | cradle | bottle | engine
The farmer milked the _. | cow | bucket | novel
The cat chased the _. | mouse | dog | piano
The tailor sewed the torn _. | coat | needle | river
The judge sent the man to _. | prison | court | dinner
The captain steered the _. | ship | harbor | blanket
The carpenter hit the nail with a _. | hammer | board | cloud
The teacher wrote the answer on the _. | board | pupil | soup
He was thirsty, so he drank a glass of _. | water | bottle | sand
She cut the bread with a _. | knife | butter | pillow
The soldier fired his _. | gun | uniform | carrot
They watched the film at the _. | cinema | actor | barn
The musician played the _. | violin | concert | window
The dog buried its _. | bone | tail | letter
It was raining, so she opened her _. | umbrella | coat | oven
The baker took the bread out of the _. | oven | flour | canal
The hunter shot a _. | deer | rifle | lamp
He locked the door with his _. | key | lock | apple
The king wore a golden _. | crown | throne | onion
The bird laid an egg in its _. | nest | wing | wallet
The gardener watered the _. | flowers | hose | guitars
The goalkeeper caught the _. | ball | goal | stove
The passengers waited at the station for the _. | train | ticket | pencil
She painted the wall with a _. | brush | color | horse
The dentist pulled out a _. | tooth | chair | flag
They lit the candles on the birthday _. | cake | party | truck
The author signed copies of her _. | book | pen | shoe
He washed his hands with _. | soap | towels | maps
The spider caught a fly in its _. | web | leg | hat
The nurse gave the patient an _. | injection | ambulance | island
The fisherman threw his net into the _. | sea | boat | attic
The astronaut landed on the _. | moon | rocket | sofa
The swimmer dived into the _. | pool | suit | bakery
The bees returned to their _. | hive | honey | tunnel
The carriage was pulled by two _. | horses | wheels | bananas
The waiter brought the _. | menu | kitchen | mountain
The surgeon began the _. | operation | hospital | football
The barber cut his _. | hair | chair | money
The chef put the roast in the _. | oven | menu | pocket
"""

# Size classes, small to large.
SIZES = (
    "ant seed crumb flea grain",
    "coin ring button grape nail",
    "mouse spoon egg watch key",
    "book cat hat bottle rabbit",
    "dog chair child suitcase goat",
    "horse table bed piano cow",
    "car elephant bus whale truck",
    "house church hotel castle ship",
    "mountain city lake island forest",
)

# property | kind | statement | nouns that have it (others in the table do not)
PROPERTIES = (
    ("round", "perceptual", "{a} {x} is round.", "ball coin apple plate ring egg"),
    ("sharp", "perceptual", "{a} {x} is sharp.", "knife needle sword saw"),
    ("soft", "perceptual", "{a} {x} is soft.", "pillow blanket cat rabbit"),
    ("heavy", "perceptual", "{a} {x} is heavy.", "car piano horse truck house"),
    ("furry", "perceptual", "{a} {x} has fur.", "cat dog rabbit horse bear"),
    ("metal", "perceptual", "{a} {x} is made of metal.", "knife coin needle sword saw ring truck"),
    ("expensive", "abstract", "{a} {x} costs a lot of money.", "car piano house ring truck horse"),
    ("dangerous", "abstract", "{a} {x} is dangerous.", "knife sword bear saw"),
    ("useful", "abstract", "{a} {x} is a useful thing in a kitchen.", "knife plate bottle oven"),
    ("living", "taxonomic", "{a} {x} is a living thing.", "cat dog rabbit horse bear"),
    ("food", "taxonomic", "{a} {x} is a kind of food.", "apple egg cake"),
    ("vehicle", "taxonomic", "{a} {x} is a vehicle.", "car truck"),
    ("eat", "affordance", "you can eat {a} {x}.", "apple egg cake"),
    ("cut", "affordance", "you can cut something with {a} {x}.", "knife sword saw"),
    ("throw", "affordance", "you can throw {a} {x}.", "ball coin apple plate egg pillow bottle"),
    ("ride", "affordance", "you can ride in or on {a} {x}.", "car truck horse"),
    ("enter", "affordance", "you can walk into {a} {x}.", "house"),
    ("wear", "affordance", "you can wear {a} {x}.", "ring hat coat"),
    ("play", "affordance", "you can play music on {a} {x}.", "piano"),
    ("fill", "affordance", "you can fill {a} {x} with water.", "bottle"),
    ("warm", "affordance", "{a} {x} keeps you warm.", "blanket coat hat oven"),
)  # fmt: skip

INFERENCES = """
People walk into houses. | A house is bigger than a person. | A person is bigger than a house.
You put a key in your pocket. | A pocket is bigger than a key. | A key is bigger than a pocket.
A boy threw a stone over the wall. | A stone is lighter than a boy. | A boy is lighter than a stone.
A woman drinks from a cup. | A cup is smaller than a woman. | A woman is smaller than a cup.
The cat caught a mouse. | A cat is faster than a mouse. | A mouse is faster than a cat.
A horse pulls a cart. | A horse is stronger than a child. | A child is stronger than a horse.
He cut the rope with a knife. | A knife is harder than a rope. | A rope is harder than a knife.
She put the book in her bag. | A bag is bigger than a book. | A book is bigger than a bag.
The ship sailed past the boat. | A ship is faster than a boat. | A boat is faster than a ship.
The stone broke the window. | A stone is harder than a window. | A window is harder than a stone.
The bird sat on the elephant. | An elephant is bigger than a bird. | A bird is bigger than an elephant.
The feather lay on the scale with the brick. | A brick is heavier than a feather. | A feather is heavier than a brick.
They parked the car in the garage. | A garage is bigger than a car. | A car is bigger than a garage.
The letter fits in the envelope. | An envelope is larger than a letter. | A letter is larger than an envelope.
The fire melted the ice. | Fire is hotter than ice. | Ice is hotter than fire.
The truck carried the piano. | A truck is stronger than a man. | A man is stronger than a truck.
The whale swallowed the fish. | A whale is larger than a fish. | A fish is larger than a whale.
The baby sat on her father's knee. | A father is older than a baby. | A baby is older than a father.
The hammer broke the glass. | A hammer is harder than glass. | Glass is harder than a hammer.
The plane passed over the train. | A plane is faster than a train. | A train is faster than a plane.
"""  # noqa: E501

ENTITY_TYPES = {"PERSON": "given", "PLACE": "place", "ORG": "org", "DATE": "date"}
ENTITY_NAMES = {
    "given": "John Mary James Anna Robert Sarah David Emma Paul Alice Peter Laura Henry Julia "
    "Thomas Kate George Helen Daniel Lucy Simon Ruth Martin Clara Arthur Nora Felix Diana".split(),
    "surname": "Smith Brown Wilson Taylor Clark Walker Young King Hill Baker Carter Parker Cooper "
    "Morgan Kelly Murphy Bell Foster Reed Hunt Palmer Stone Webb Grant Burns Lane Shaw".split(),
    "place": "London Paris Berlin Rome Madrid Vienna Boston Chicago Cairo Athens Lisbon Dublin "
    "Oslo Prague Warsaw Texas Kansas Ohio France Spain Italy Poland Kenya Peru Chile "
    "Norway Sweden Egypt India China Japan Brazil Canada".split(),
    "org": [
        "General Motors", "the Red Cross", "Oxford University", "the United Nations", "Microsoft",
        "the World Bank", "Harvard University", "the Royal Navy", "Sony", "the European Union",
        "the Supreme Court", "the National Guard", "Boston College", "the Labour Party", "Ford",
        "the British Museum", "the Senate", "Columbia Records", "the Air Force", "Shell",
        "Yale University", "the Boy Scouts", "Intel", "the Bank of England",
    ],
    "date": [
        "Monday", "last Tuesday", "in June", "in 1945", "in March 1972", "on Friday", "in 2001",
        "last summer", "in the spring of 1968", "on Christmas Day", "in October", "in 1812",
    ],
}  # fmt: skip
ENTITY_FRAMES = (
    "PERSON was born in PLACE and studied at ORG.",
    "ORG opened a new office in PLACE DATE.",
    "PERSON met PERSON in PLACE DATE.",
    "DATE, PERSON left ORG and moved to PLACE.",
    "The president of ORG visited PLACE DATE.",
    "PERSON has worked for ORG since he came to PLACE.",
    "Reporters in PLACE asked PERSON about ORG.",
    "ORG and ORG signed a contract in PLACE.",
    "PERSON wrote a book about the history of PLACE.",
    "My uncle PERSON lives near PLACE with his family.",
    "The train from PLACE to PLACE was late.",
    "According to PERSON, ORG will close its factory in PLACE.",
    "The letter from PERSON reached PLACE DATE.",
    "After the war, PERSON joined ORG.",
    "The people of PLACE elected PERSON DATE.",
    "PERSON told ORG that the road to PLACE was closed.",
)

# origin -> (country, given names, surnames)
ORIGINS = {
    "Italian": ("Italy", "Marco Giulia Paolo Francesca Lorenzo Chiara",
                "Bertolini Carbonari Ferrucci Montanelli Parisotti Zambelli"),
    "German": ("Germany", "Klaus Heike Jurgen Ingrid Wolfgang Sabine",
               "Hartmann Steinbach Kellermann Vogelsang Rosenbaum Lindner"),
    "Japanese": ("Japan", "Hiroshi Yuki Kenji Naoko Takeshi Haruka",
                 "Morikawa Tanimoto Kurosaka Ishiyama Fujimura Nakahara"),
    "Russian": ("Russia", "Sergei Natasha Dmitri Olga Boris Irina",
                "Volkonov Petrenkov Sokolin Kuznev Morozin Baranov"),
    "French": ("France", "Jacques Celine Pierre Camille Luc Aurelie",
               "Beaumarchand Delacourt Fontenay Lemercier Rousselin Villeneuve"),
    "Spanish": ("Spain", "Javier Carmen Pablo Lucia Diego Pilar",
                "Hernandino Castelar Montoro Sandovar Valdecasa Ibarrola"),
    "Polish": ("Poland", "Andrzej Agnieszka Tomasz Malgorzata Piotr Zofia",
               "Kowalczuk Wisniecki Zielonski Nowakowicz Lewandow Jablonski"),
    "Irish": ("Ireland", "Sean Siobhan Patrick Maeve Declan Aoife",
              "Gallaher Donnellan Fitzmaurice McCafferty Shaughney Tiernan"),
    "Chinese": ("China", "Wei Xiaoli Jian Meiling Zhang Yanfei",
                "Zhou Huang Xu Deng Luo Feng"),
    "Indian": ("India", "Rajesh Priya Sanjay Lakshmi Vikram Anjali",
               "Chaturvedi Mukhopadhyay Venkatesh Raghunath Deshmukh Srivastav"),
    "Swedish": ("Sweden", "Lars Astrid Sven Ingeborg Bjorn Annika",
                "Lindqvist Bergstrand Nordholm Ekstrom Hallgren Sjoberg"),
    "Greek": ("Greece", "Nikos Eleni Yannis Katerina Stavros Dimitra",
              "Papadakis Stavropoulos Georgakis Kalogeras Vasilakos Andreou"),
}  # fmt: skip

OCCUPATIONS = {
    "m": "engineer mechanic carpenter soldier pilot farmer guard sailor captain sheriff",
    "f": "nurse secretary librarian dancer maid teacher receptionist model cleaner housekeeper",
    "neutral": "student doctor lawyer writer journalist manager singer painter chef clerk",
}
PRONOUN_FRAMES = (
    "The {x} said that {mask} was tired.",
    "The {x} came home because {mask} was sick.",
    "Everyone likes the {x} because {mask} works hard.",
    "When the {x} arrived, {mask} smiled.",
    "The {x} told us that {mask} would come back.",
)

MEN = ("the king", "the boy", "the father", "my uncle", "his brother", "the actor", "the prince",
       "the man", "the priest", "the monk", "John", "Robert", "Peter", "Thomas", "Henry", "David",
       "George", "Paul")  # fmt: skip
WOMEN = ("the queen", "the girl", "the mother", "my aunt", "his sister", "the actress",
         "the princess", "the woman", "the nun", "the widow", "Mary", "Anna", "Sarah", "Alice",
         "Helen", "Emma", "Laura", "Kate")  # fmt: skip
COREFERENCE_FRAMES = (
    "A met B before P left the city .",
    "A saw B when P opened the door .",
    "A wrote to B because P was ill .",
    "A called B after P came home .",
    "A thanked B because P had found the money .",
    "A talked to B while P was cooking .",
    "A knew B long before P became famous .",
    "A followed B until P reached the station .",
    "A helped B because P could not carry the boxes alone .",
    "A asked B whether P wanted some tea .",
    "A visited B when P lived in the village .",
    "A waved to B as P crossed the street .",
)
