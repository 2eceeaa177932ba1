import type { Within } from '../db/context.ts'
import { awaitPipelined, type Statement, type Transaction } from '../db/db.ts'
import {
  countTypos,
  featuresOfSimilar,
  hasSimilarWords,
  maxTypos,
  minSharedTrigrams,
} from '../entities/indexes/search-words.ts'
import { firstId, lastId } from '../values/formats.ts'
import { maxOverlapping, type SearchText } from './search-text.ts'
import {
  countEntitiesSql,
  countWordsSql,
  findByIdentifierSql,
  findExactOfBothSql,
  findExactSql,
  findPrefixOfBothSql,
  findPrefixSql,
  findSimilarSql,
  findSimilarWordsSql,
  preferNothingSql,
  preferOrderSql,
  searchAloneSql,
  walkPrefixSql,
} from './sql.ts'

/**
 * The rank of a result: the text is its identifier, it has all words exactly, or it has words that begin with them. A
 * result with similar words has the number of all typos added to the last rank.
 */
const ranks = { identifier: 0, exact: 1, prefix: 2 }
/** A result with one typo has the rank after this one. */
const similarRank = ranks.prefix

/** A stack to search, and the readings of the text there. Without a reading, only identifiers are searched. */
export type SearchedStack = { stack_id: number; text: SearchText }

export type Searched = { organization_id: number; stacks: readonly SearchedStack[] }

/**
 * A result, and its position in the order of all results: by rank, then in the order of the searched stacks, then by
 * identifier.
 */
export type Place = { rank: number; stack: number; id: string }

/** The maximum number of results for one identifier. Many people may share an email. */
const maxByIdentifier = 500
/** Words are counted up to `rare`. If all words are more frequent, the longest ones are counted up to `frequent`. */
export type Frequencies = { rare: number; frequent: number }
const defaultFrequencies: Frequencies = { rare: 500, frequent: 20_000 }
const maxCountedAgain = 3
const maxSimilarWords = 20
/** The maximum number of words with common features whose typos are counted. */
const maxWordsCompared = 500
/**
 * The maximum number of entities whose words are compared, because they have words that are similar to one or two words
 * of the text.
 */
const maxSimilarEntities = 1_000
/**
 * The maximum number of entries of a word that are compared with those of another, to find the entities with both.
 * 10,000 of each take 8 ms.
 */
const maxSimilarEntries = 10_000

/** Finds the next results after a place, in order. The frequencies affect the time, but not the results. */
export async function findPlaces(
  tx: Transaction,
  searched: Searched,
  after: Place | undefined,
  limit: number,
  frequencies = defaultFrequencies,
): Promise<Place[]> {
  await tx.query(searchAloneSql, [])
  const { organization_id, stacks } = searched
  const known: string[][] = []
  for (const stack of stacks) known.push(await findByIdentifier({ tx, organization_id }, stack))
  const isKnown = known.some(ids => ids.length > 0)
  const start = after ?? { rank: ranks.identifier, stack: 0, id: firstId }
  const found = known
    .flatMap((ids, stack) => ids.map(id => ({ rank: ranks.identifier, stack, id })))
    .filter(place => comparePlaces(place, start) > 0)
  const searches = stacks.flatMap(({ stack_id, text }, stack) =>
    text.readings.map((_, reading) => ({
      stack,
      words: new WordSearch(tx, [organization_id, stack_id], text, reading, known[stack]!, frequencies),
    })),
  )
  for (const stage of stages) {
    if (found.length >= limit) break
    if (start.rank > stage.lastRank) continue
    // A text that is the identifier of an entity counts as correctly spelt.
    if (stage.name === 'findSimilar' && isKnown) break
    const places: Place[] = []
    for (const { stack, words } of searches) {
      const from = start.rank >= stage.rank ? startOf(start, stack) : { rank: stage.rank, id: firstId }
      const results = await words[stage.name](from, limit - found.length)
      places.push(...results.map(result => ({ ...result, stack })))
    }
    found.push(...merge(places).slice(0, limit - found.length))
  }
  return found.slice(0, limit)
}

/**
 * The rank and identifier after which the results of a stack follow a place. Results of the same rank are in the order
 * of the stacks.
 */
const startOf = ({ rank, stack: last, id }: Place, stack: number): Result =>
  stack === last ? { rank, id } : { rank, id: stack < last ? lastId : firstId }

const comparePlaces = (a: Place, b: Place) =>
  a.rank - b.rank || a.stack - b.stack || (a.id < b.id ? -1 : a.id > b.id ? 1 : 0)

/** Sorts the places from all stacks and readings of the text, and keeps one place for each entity. */
function merge(places: Place[]): Place[] {
  const seen = new Set<string>()
  return places.sort(comparePlaces).filter(({ stack, id }) => {
    const key = `${stack} ${id}`
    return !seen.has(key) && seen.add(key)
  })
}

const stages = [
  { name: 'findExact', rank: ranks.exact, lastRank: ranks.exact },
  { name: 'findPrefix', rank: ranks.prefix, lastRank: ranks.prefix },
  { name: 'findSimilar', rank: similarRank + 1, lastRank: Infinity },
] as const

async function findByIdentifier({ tx, organization_id }: Within, { stack_id, text }: SearchedStack): Promise<string[]> {
  const values = [organization_id, stack_id, text.external_id, text.email_key, text.mobile_key, maxByIdentifier]
  const rows = await tx.query<{ id: string }>(findByIdentifierSql, values)
  return [...new Set(rows.map(({ id }) => id))].sort()
}

/** A result of one stack. */
type Result = { rank: number; id: string }

/**
 * A word of the text, the number of entities that have it, and the number of entries that begin with it. Both are
 * counted up to a limit.
 */
type Word = { word: string; exact: number; prefix: number }
type SimilarWord = { word: string; typos: number }

const wholeWord = ({ word }: Word) => `% ${word} %`
/** A regular expression for documents with all of the words. */
const allOf = (words: readonly string[]) => `^${words.map(word => `(?=.* ${word} )`).join('')}`
const beginning = ({ word }: Pick<Word, 'word'>) => `% ${word}%`

/**
 * Finds entities by one reading of the text. The readings differ only in numbers, which have no similar words: an
 * entity that another reading finds by prefixes has no typo in this one either.
 */
class WordSearch {
  readonly #tx: Transaction
  readonly #stack: [number, number]
  readonly #words: readonly string[]
  /** Expressions for all words of each other reading. A search by prefixes leaves out the entities that match one. */
  readonly #otherExact: readonly string[]
  readonly #known: readonly string[]
  readonly #frequencies: Frequencies
  #counted: Promise<Word[]> | undefined

  /** The search leaves out results with one of the ids `known`. */
  constructor(
    tx: Transaction,
    stack: [organization_id: number, stack_id: number],
    { readings }: SearchText,
    reading: number,
    known: readonly string[],
    frequencies: Frequencies,
  ) {
    this.#tx = tx
    this.#stack = stack
    this.#words = readings[reading]!
    this.#otherExact = readings.filter((_, index) => index !== reading).map(allOf)
    this.#known = known
    this.#frequencies = frequencies
  }

  async findExact(after: Result, limit: number): Promise<Result[]> {
    const words = await this.#count()
    const [rarest, next] = words.toSorted((a, b) => a.exact - b.exact)
    if (rarest!.exact === 0) return []
    const values = [...this.#valuesOf(after, limit), rarest!.word, words.map(wholeWord)]
    // All entries of a single word match, so the search ends with the page.
    if (!next || rarest!.exact <= this.#frequencies.rare) return this.#read(ranks.exact, findExactSql, values)
    return this.#readInOrder(ranks.exact, findExactOfBothSql, [...values, next.word])
  }

  async findPrefix(after: Result, limit: number): Promise<Result[]> {
    const words = await this.#count()
    const [rarest, next] = words.toSorted((a, b) => a.prefix - b.prefix)
    if (rarest!.prefix === 0) return []
    const patterns = [words.map(beginning), words.map(wholeWord), this.#otherExact]
    const values = [...this.#valuesOf(after, limit), rarest!.word, ...patterns]
    const { rare, frequent } = this.#frequencies
    if (rarest!.prefix > frequent) return this.#readInOrder(ranks.prefix, walkPrefixSql, values)
    return next && rarest!.prefix > rare && next.prefix <= frequent
      ? this.#read(ranks.prefix, findPrefixOfBothSql, [...values, next.word])
      : this.#read(ranks.prefix, findPrefixSql, values)
  }

  async findSimilar(after: Result, limit: number): Promise<Result[]> {
    if (this.#words.length > maxOverlapping) return []
    const counted = await this.#count()
    const similar = await this.#findSimilarWords()
    if (counted.some(({ prefix }, index) => prefix === 0 && similar[index]!.length === 0)) return []
    if (similar.every(each => each.length === 0)) return []
    const words = await this.#countSimilar(similar)
    const [first, second] = words.toSorted((a, b) => a.size - b.size || b.word.length - a.word.length)
    // Above that number, the entities are compared with those of a second word before kith reads any document.
    const isOfBoth = second !== undefined && first!.size > maxSimilarEntities
    const read = isOfBoth ? [first!, second] : [first!]
    const max = isOfBoth ? maxSimilarEntries : maxSimilarEntities
    const candidates = read.flatMap(({ similar }, index) =>
      shareEntries(similar, max).map(each => ({ ...each, n: index + 1 })),
    )
    const others = words.filter(({ word }) => word !== first!.word)
    const similarToOthers = others.flatMap(({ similar }, index) => similar.map(each => ({ ...each, n: index + 1 })))
    const rows = await this.#tx.query<{ id: string; typos: number }>(findSimilarSql, [
      ...this.#valuesOf(after, limit),
      after.rank - similarRank,
      candidates.map(({ word }) => word),
      candidates.map(({ typos }) => typos),
      candidates.map(({ max }) => max),
      candidates.map(({ n }) => n),
      read.map(({ word }) => word),
      // An entity with a word that begins with the only word of the text has a better rank.
      others.length === 0 ? 0 : max,
      maxSimilarEntities,
      others.map(({ word }) => word),
      similarToOthers.map(({ word }) => word),
      similarToOthers.map(({ typos }) => typos),
      similarToOthers.map(({ n }) => n),
      words.map(beginning),
      others.map(({ word, similar }) => expressionOf(word, similar)),
    ])
    return rows.map(({ id, typos }) => ({ rank: similarRank + typos, id }))
  }

  #valuesOf({ id }: Result, limit: number) {
    return [...this.#stack, id, this.#known, limit] as const
  }

  async #read(rank: number, statement: Statement, values: unknown[]): Promise<Result[]> {
    const rows = await this.#tx.query<{ id: string }>(statement, values)
    return rows.map(({ id }) => ({ rank, id }))
  }

  async #readInOrder(rank: number, statement: Statement, values: unknown[]): Promise<Result[]> {
    await this.#tx.query(preferOrderSql, [])
    const found = await this.#read(rank, statement, values)
    await this.#tx.query(preferNothingSql, [])
    return found
  }

  #count(): Promise<Word[]> {
    this.#counted ??= this.#countOnce()
    return this.#counted
  }

  async #countOnce(): Promise<Word[]> {
    const { rare, frequent } = this.#frequencies
    const counted = await this.#countUpTo(this.#words, rare)
    if (counted.some(({ prefix }) => prefix <= rare)) return counted
    const longest = this.#words.toSorted((a, b) => b.length - a.length).slice(0, maxCountedAgain)
    const again = await this.#countUpTo(longest, frequent)
    // A word that is not counted again counts as more frequent than the others.
    const uncounted = (count: number) => (count > rare ? Infinity : count)
    return counted.map(({ word, exact, prefix }) => {
      const known = again.find(each => each.word === word)
      return known ?? { word, exact: uncounted(exact), prefix: uncounted(prefix) }
    })
  }

  /** Counts up to one more than the limit, to find whether there are more. */
  async #countUpTo(words: readonly string[], limit: number): Promise<Word[]> {
    const counts = await this.#tx.query<Omit<Word, 'word'>>(countWordsSql, [...this.#stack, words, limit + 1])
    return counts.map((count, index) => ({ word: words[index]!, ...count }))
  }

  /**
   * Finds the words that are similar to each word, fewest typos first. A longer word that begins with the word is not
   * among them.
   */
  async #findSimilarWords(): Promise<SimilarWord[][]> {
    const found = this.#words.map(async word => {
      if (!hasSimilarWords(word)) return []
      const { trigrams, remainders } = featuresOfSimilar(word)
      const values = [...this.#stack, trigrams, minSharedTrigrams(word), remainders, maxWordsCompared]
      return similarTo(word, await this.#tx.query<{ word: string }>(findSimilarWordsSql, values))
    })
    await awaitPipelined(found)
    return Promise.all(found)
  }

  /**
   * Counts the entries that match each word: those of its similar words, and those that begin with it. Each is counted
   * up to the limit.
   */
  async #countSimilar(similar: readonly (readonly SimilarWord[])[]) {
    const all = similar.flatMap(each => each.map(({ word }) => word))
    const counts = await this.#tx.query<{ count: number }>(countEntitiesSql, [...this.#stack, all, maxSimilarEntries])
    const beginnings = await this.#countUpTo(this.#words, maxSimilarEntries)
    let next = 0
    return beginnings.map(({ word, prefix }, index) => {
      const own = similar[index]!.map(each => ({ ...each, count: counts[next++]!.count }))
      return { word, similar: own, size: own.reduce((size, { count }) => size + count, prefix) }
    })
  }
}

/**
 * Divides the maximum number of entries to read among similar words. Each word gets an equal share, or all its entries
 * if it has fewer.
 */
function shareEntries<W extends { count: number }>(words: readonly W[], max: number): (W & { max: number })[] {
  let remaining = max
  return words
    .toSorted((a, b) => a.count - b.count)
    .map((word, index) => {
      const share = Math.min(word.count, Math.floor(remaining / (words.length - index)))
      remaining -= share
      return { ...word, max: share }
    })
}

/**
 * A regular expression for words that begin with a word or are similar to it. All of them consist of letters and
 * digits.
 */
const expressionOf = (word: string, similar: readonly SimilarWord[]) =>
  ` (${[word, ...similar.map(each => `${each.word} `)].join('|')})`

function similarTo(word: string, found: readonly { word: string }[]): SimilarWord[] {
  const max = maxTypos(word)
  return found
    .filter(other => Math.abs(other.word.length - word.length) <= max && !other.word.startsWith(word))
    .map(other => ({ word: other.word, typos: countTypos(word, other.word) }))
    .filter(({ typos }) => typos <= max)
    .sort((a, b) => a.typos - b.typos || (a.word < b.word ? -1 : 1))
    .slice(0, maxSimilarWords)
}
