// kith has its own lists. The lists of a library would change with its version, and so would the shop of a seed.

/** The names, cities and mobile numbers of a country. */
export type Country = {
  language: string
  firstNames: readonly string[]
  lastNames: readonly string[]
  cities: readonly string[]
  /** The range that is reserved for fiction, if there is one: `count` numbers from `first`. */
  mobile?: { prefix: string; first: number; count: number }
}

const splitNames = (text: string): string[] => text.split('|').map(word => word.trim())

export const countries: readonly Country[] = [
  {
    language: 'it-IT',
    firstNames: splitNames('Giulia|Lorenzo|Chiara|Matteo|Niccolò|Elena|Davide|Martina|Paolo|Beatrice|Tommaso|Noemi'),
    lastNames: splitNames('Moretti|Ricci|Gallo|Conti|De Luca|Marchetti|Ferrara|Bianchi|Greco|Rinaldi|Villa|Serra'),
    cities: splitNames('Rome|Rome|Milan|Turin|Naples|Bologna'),
  },
  {
    language: 'en-GB',
    firstNames: splitNames('Amelia|Oliver|Isla|Harry|Zoë|Callum|Freya|George|Niamh|Rhys|Imogen|Jack'),
    lastNames: splitNames('Whitaker|Ashworth|Clarke|Davies|MacLeod|Okafor|Patel|Shaw|Turner|Wright|Hughes|O’Connor'),
    cities: splitNames('London|London|Leeds|Bristol|Glasgow|Cardiff'),
    // Ofcom reserves these numbers for drama.
    mobile: { prefix: '+44', first: 7_700_900_000, count: 1_000 },
  },
  {
    language: 'fr-FR',
    firstNames: splitNames('Camille|Hugo|Léa|Étienne|Manon|Louis|Inès|Jules|Zélie|Baptiste|Anaïs|Théo'),
    lastNames: splitNames('Lefèvre|Moreau|Garnier|Rousseau|Fontaine|Mercier|Blanchard|Noël|Perrot|Girard|Benali|Roche'),
    cities: splitNames('Paris|Paris|Lyon|Nantes|Lille|Marseille'),
    // Arcep reserves these numbers for works of fiction.
    mobile: { prefix: '+33', first: 639_980_000, count: 10_000 },
  },
  {
    language: 'de-DE',
    firstNames: splitNames('Hannah|Jonas|Mia|Felix|Käthe|Lukas|Clara|Jürgen|Emilia|Moritz|Frieda|Anton'),
    lastNames: splitNames('Schäfer|Krüger|Vogel|Winkler|Groß|Brandt|Yılmaz|Lehmann|Köhler|Sommer|Busch|Weiß'),
    cities: splitNames('Berlin|Berlin|Hamburg|Leipzig|Köln|Freiburg'),
  },
  {
    language: 'nb-NO',
    firstNames: splitNames('Ingrid|Søren|Astrid|Håkon|Liv|Magnus|Nora|Bjørn|Sigrid|Jonas|Maja|Eirik'),
    lastNames: splitNames('Hansen|Nygård|Solberg|Bakke|Østby|Haugen|Lie|Strand|Moen|Dahl|Lund|Aas'),
    cities: splitNames('Oslo|Oslo|Bergen|Trondheim|Tromsø|Stavanger'),
  },
  {
    language: 'es-PE',
    firstNames: splitNames('Lucía|Mateo|Valeria|Thiago|Camila|Joaquín|Ximena|Andrés|Rosa|Íñigo|Milagros|Diego'),
    lastNames: splitNames('Quispe|Flores|Núñez|Huamán|Rojas|Mamani|Castillo|Peña|Salazar|Vargas|Chávez|Medina'),
    cities: splitNames('Lima|Lima|Arequipa|Cusco|Trujillo|Piura'),
  },
]

/** The products of the shop: name, category, and price in cents before the material. */
export const products: readonly (readonly [name: string, category: string, cents: number])[] = [
  ['desk lamp', 'lighting', 3_900],
  ['floor lamp', 'lighting', 11_900],
  ['pendant light', 'lighting', 8_400],
  ['side table', 'furniture', 12_500],
  ['bookshelf', 'furniture', 21_900],
  ['stool', 'furniture', 6_900],
  ['bench', 'furniture', 18_900],
  ['coat rack', 'furniture', 5_400],
  ['serving bowl', 'kitchen', 2_900],
  ['cutting board', 'kitchen', 3_400],
  ['pepper mill', 'kitchen', 2_700],
  ['tea tray', 'kitchen', 2_200],
  ['picture frame', 'decoration', 1_900],
  ['wall clock', 'decoration', 4_900],
  ['vase', 'decoration', 3_100],
  ['candle holder', 'decoration', 1_400],
]

/** The materials, and the percentage that each adds to the price. */
export const materials: readonly (readonly [name: string, percent: number])[] = [
  ['oak', 20],
  ['walnut', 40],
  ['birch', 0],
  ['ash', 10],
  ['cherry', 35],
  ['bamboo', -10],
  ['cork', -20],
  ['brass', 60],
  ['steel', 15],
  ['ceramic', 5],
  ['glass', 25],
  ['linen', -5],
]

export const companyNames: readonly (readonly [name: string, industry: string])[] = [
  ['Architects', 'construction'],
  ['Builders', 'construction'],
  ['Ceramics', 'manufacturing'],
  ['Instruments', 'manufacturing'],
  ['Logistics', 'transport'],
  ['Shipping', 'transport'],
  ['Robotics', 'technology'],
  ['Software', 'technology'],
  ['Publishing', 'media'],
  ['Studio', 'media'],
  ['Hotels', 'hospitality'],
  ['Kitchens', 'hospitality'],
]

export const pages = ['/', '/', '/sale', '/cart', '/about', '/account']
export const orderStates = ['delivered', 'delivered', 'delivered', 'shipped', 'placed', 'returned']
