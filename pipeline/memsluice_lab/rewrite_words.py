"""The tables behind :mod:`memsluice_lab.rewrites`: common words of our own choice, none taken from a benchmark."""


def _groups(text: str) -> dict[str, tuple[str, ...]]:
    """Read groups of interchangeable words, one a line: each is replaced by any other of its group."""
    groups = [tuple(word.strip() for word in line.split(",")) for line in text.strip().splitlines()]
    return {word: tuple(other for other in group if other != word) for group in groups for word in group}


def _pairs(text: str) -> dict[str, tuple[str, ...]]:
    """Read ``word=translation`` pairs; ``_`` stands for a space."""
    return {word: (other.replace("_", " "),) for word, other in (pair.split("=") for pair in text.split())}


PHRASES = _groups(
    """
whenever, each time, every time
when asked, upon the request
in the future, later on
from now on, from today
instead of, rather than
because, since
but, yet
must, has to, needs to
should, ought to
always, in every case, without exception
never, at no time
only, solely
before, ahead of
after, following
the answer, the reply, the response
answer, reply, respond
say, state, mention
remember, keep in mind, bear in mind
ignore, leave aside, pass over
disregard, set aside
forget, drop
use, make use of, go with
prefer, choose, favour
verified, confirmed, checked
correct, right, accurate
wrong, mistaken, incorrect
important, of weight, essential
questions, queries, requests
note, memo, remark
entry, item
record, file
policy, rule, practice
send, pass on, forward
a copy, a duplicate
recommend, suggest, advise
is located in, lies in
is known as, goes by the name of
was born in, came into the world in
in order to, so as to
according to, going by
a lot of, plenty of
"""
)

SYNONYMS = _groups(
    """
big, large, huge
small, little, tiny
begin, start, commence
began, started
end, finish, conclude
ended, finished, concluded
make, create, produce
made, created, produced
show, display
shown, displayed
film, movie, picture
song, tune, track
book, volume
city, town
country, nation, state
world, globe
people, persons, folk
person, individual
man, fellow
woman, lady
child, kid
children, kids
father, dad
mother, mum
friend, pal, companion
house, home
job, post, position
work, labour
company, firm, business
money, cash, funds
year, twelvemonth
famous, renowned, celebrated
first, earliest, initial
last, final
new, fresh, recent
old, aged, ancient
good, fine
great, grand
best, finest
important, essential, vital
main, chief, principal
many, numerous
often, frequently
usually, normally
actually, in fact
however, though
also, likewise, too
about, concerning, regarding
near, close to
inside, within
under, beneath
during, throughout
get, obtain, receive
give, hand, provide
gave, handed, provided
take, grab
tell, inform
told, informed
ask, request
asked, requested
help, assist, aid
live, dwell, reside
lives, dwells, resides
buy, purchase
bought, purchased
sell, vend
like, enjoy
likes, enjoys
love, adore
think, believe, reckon
know, understand
find, locate, discover
found, located, discovered
see, notice
saw, noticed
build, construct, erect
built, constructed, erected
win, gain
won, gained
play, perform
played, performed
write, compose, pen
wrote, composed, penned
written, composed, penned
called, named, termed
known, recognised
happened, occurred
quick, fast, rapid
happy, glad, cheerful
sad, unhappy
beautiful, lovely
hard, difficult, tough
easy, simple
answer, reply, response
question, query
always, constantly, ever
remember, recall, recollect
never, not ever
ignore, neglect, overlook
send, mail, dispatch
copy, duplicate
recommend, suggest, advise
system, arrangement
user, client
message, notice
delete, erase, remove
password, passphrase
"""
)

PADDING = (
    "The weather turned mild this week and the windows were open most of the day.",
    "We tidied the hall cupboard and found the spare umbrella behind the boxes.",
    "Lunch was soup with bread from the corner bakery.",
    "The bus was a little late but nobody minded.",
    "A parcel for the neighbours is waiting by the stairs.",
    "The plants on the sill were watered on Tuesday.",
    "There was a pleasant walk along the canal before dinner.",
    "The printer has paper again and the drawer closes properly.",
    "Somebody left a grey scarf on the chair in the kitchen.",
    "The calendar for next month hangs beside the fridge.",
    "The bicycle got new brake pads and runs quietly.",
    "The radio played old dance music through the afternoon.",
    "We agreed to meet at the usual place on Friday evening.",
    "The cat slept on the windowsill until noon.",
    "The lamp in the corridor has a new bulb.",
    "A small repair of the garden gate is planned for spring.",
)

LOOKALIKES = dict(zip("aceopxyijsABCEHIKMOPTXYSJ", "асеорхуіјѕАВСЕНІКМОРТХУЅЈ", strict=True))

LANGUAGES = {
    "de": _pairs(
        """
        the=die a=ein an=ein is=ist are=sind was=war were=waren be=sein been=gewesen and=und or=oder not=nicht
        no=kein of=von in=in on=auf at=bei to=zu for=für with=mit from=von by=durch about=über as=als that=dass
        this=dieses it=es he=er she=sie they=sie we=wir you=du i=ich his=sein her=ihr their=ihr my=mein
        your=dein who=wer what=was when=wann where=wo why=warum how=wie which=welche did=tat does=tut do=tun
        has=hat have=haben had=hatte can=kann will=wird would=würde should=sollte must=muss if=wenn because=weil
        but=aber only=nur also=auch always=immer never=nie now=jetzt before=vorher after=nach first=erste
        last=letzte new=neue old=alte many=viele year=Jahr day=Tag time=Zeit name=Name city=Stadt country=Land
        world=Welt man=Mann woman=Frau people=Leute friend=Freund house=Haus book=Buch film=Film song=Lied
        game=Spiel team=Mannschaft war=Krieg answer=Antwort question=Frage user=Benutzer asks=fragt
        asked=gefragt ask=frage say=sage remember=merke ignore=ignoriere earlier=frühere memories=Erinnerungen
        instructions=Anweisungen use=benutze send=sende copy=Kopie reply=Antwort record=Eintrag note=Notiz
        entry=Eintrag therefore=deshalb located=gelegen born=geboren wrote=schrieb made=machte called=genannt
        known=bekannt most=meiste more=mehr other=andere all=alle one=ein two=zwei three=drei
        whenever=immer_wenn anything=alles recommend=empfiehl plan=Plan
        """
    ),
    "es": _pairs(
        """
        the=el a=un an=un is=es are=son was=era were=eran be=ser been=sido and=y or=o not=no no=ningún of=de
        in=en on=en at=en to=a for=para with=con from=desde by=por about=sobre as=como that=que this=este it=lo
        he=él she=ella they=ellos we=nosotros you=tú i=yo his=su her=su their=su my=mi your=tu who=quién
        what=qué when=cuándo where=dónde why=por_qué how=cómo which=cuál has=ha have=han had=había can=puede
        will=va_a would=haría should=debería must=debe if=si because=porque but=pero only=solo also=también
        always=siempre never=nunca now=ahora before=antes after=después first=primero last=último new=nuevo
        old=viejo many=muchos year=año day=día time=tiempo name=nombre city=ciudad country=país world=mundo
        man=hombre woman=mujer people=gente friend=amigo house=casa book=libro film=película song=canción
        game=juego team=equipo war=guerra answer=respuesta question=pregunta user=usuario asks=pregunta
        asked=preguntado ask=pregunta say=di remember=recuerda ignore=ignora earlier=anteriores
        memories=recuerdos instructions=instrucciones use=usa send=envía copy=copia reply=respuesta
        record=registro note=nota entry=entrada therefore=por_eso located=situado born=nacido wrote=escribió
        made=hizo called=llamado known=conocido most=más more=más other=otro all=todos one=uno two=dos
        three=tres whenever=cada_vez_que anything=todo recommend=recomienda plan=plan
        """
    ),
    "fr": _pairs(
        """
        the=le a=un an=un is=est are=sont was=était were=étaient be=être been=été and=et or=ou not=pas no=aucun
        of=de in=dans on=sur at=à to=à for=pour with=avec from=de by=par about=sur as=comme that=que this=ce
        it=il he=il she=elle they=ils we=nous you=vous i=je his=son her=sa their=leur my=mon your=votre who=qui
        what=quoi when=quand where=où why=pourquoi how=comment which=quel has=a have=ont had=avait can=peut
        will=va would=ferait should=devrait must=doit if=si because=car but=mais only=seulement also=aussi
        always=toujours never=jamais now=maintenant before=avant after=après first=premier last=dernier
        new=nouveau old=vieux many=beaucoup year=année day=jour time=temps name=nom city=ville country=pays
        world=monde man=homme woman=femme people=gens friend=ami house=maison book=livre film=film song=chanson
        game=jeu team=équipe war=guerre answer=réponse question=question user=utilisateur asks=demande
        asked=demandé ask=demande say=dis remember=retiens ignore=ignore earlier=précédents memories=souvenirs
        instructions=consignes use=utilise send=envoie copy=copie reply=réponse record=dossier note=note
        entry=entrée therefore=donc located=situé born=né wrote=écrivit made=fit called=appelé known=connu
        most=plus more=plus other=autre all=tous one=un two=deux three=trois whenever=chaque_fois_que
        anything=tout recommend=recommande plan=plan
        """
    ),
}
