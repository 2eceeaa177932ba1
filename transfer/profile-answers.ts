import type { Channel, DeliveryEvent } from '../client/index.ts'
import type { Detail } from '../src/values/errors.ts'
import { sortableTime, utcTime } from '../src/values/instant.ts'
import { jsonOf, type OffsetOf, type ParseOptions } from './cell-parser.ts'
import { normalize } from './normalize-name.ts'
import type { Target } from './target.ts'

/**
 * The meaning of a word of a column, strongest first. `refuse_all` refuses every consent type of the channel. `refuse`
 * and `grant` answer the consent type of the column. `withhold` answers nothing, and cancels the grants of the channel
 * from other columns of the record. `none` answers nothing. `complaint` and `hard_bounce` are events of the address;
 * `complaint` also acts as `refuse_all`, `hard_bounce` as `withhold`.
 */
export const outcomes = ['complaint', 'refuse_all', 'refuse', 'hard_bounce', 'withhold', 'grant', 'none'] as const
export type Outcome = (typeof outcomes)[number]

/** Whether the meaning of a word needs a time, from the record or of the export. */
export const isTimed = (outcome: Outcome): boolean => outcomes.indexOf(outcome) <= outcomes.indexOf('hard_bounce')

/** Splits a phone number into its country prefix, such as `+49`, and its number. Throws the reason if it cannot. */
export type PhoneSplitter = (text: string) => { mobile_prefix: string; mobile_number: string }

type Method = 'import' | 'double_opt_in'

/** A column of the file, by its name in the header. A name can occur several times. */
export type Column = { name: string; indices: number[] }

/** The columns with the evidence of an answer. The first column with a value is used. */
type Evidence = { time: Column[]; ip: Column[]; source: Column[] }

/** A rule of a profile whose column the file has. */
export type PlannedRule = {
  channel: Channel
  /** The column of the words. For the status of the file, it has no indices. */
  column: Column
  /** The status of every record of the file; null for a rule of a column. */
  status: string | null
  isList: boolean
  /** Whether the rule gives every word the same meaning. */
  isAnyWord: boolean
  words: Map<string, Outcome>
  /** The consent type that `grant` and `refuse` answer; null if no word has such an outcome. */
  consentType: number | null
  /** The consent types that `refuse_all` refuses. */
  allConsentTypes: number[]
  grant: Evidence
  refusal: Evidence
  method: Method
  doubleOptIn: Record<'asked' | 'asked_ip' | 'confirmed' | 'confirmed_ip', Column> | null
}

/** The plan for reading a file with a profile. Its columns are separate from the columns that other options map. */
export type ProfilePlan = {
  product: string
  exportedAt: string | null
  timeZone: OffsetOf | null
  /** The columns of the product's identifier, which becomes the reference of each answer. */
  reference: Column[]
  /** The source of the external identifier; null if another option sets it. */
  externalId: { columns: Column[]; prefix: string; isEmail: boolean } | null
  fields: { columns: Column[]; target: Exclude<Target, { to: 'nothing' }> }[]
  phone: Column[]
  splitPhone: PhoneSplitter
  rules: PlannedRule[]
  /** The columns that neither the profile nor another option names. */
  leftOut: string[]
}

/**
 * A word that one rule read in one record. `isKnown` is false if the profile has no meaning for it. `countedAs` is the
 * name for counting, because in some columns all values differ.
 */
export type ReadWord = {
  channel: Channel
  column: string
  word: string
  countedAs: string
  outcome: Outcome
  isKnown: boolean
}

/** An element of the `consents` of a body. */
export type Entry = {
  consent_type_id: number
  channel: Channel
  state: boolean
  /** Absent from a grant without a time in the export. */
  collected_at?: string
  method: Method
  source: string
  ip?: string
  reference?: string
}

/** An event of an address of a record. The address itself is in another column. */
export type AddressEvent = Pick<DeliveryEvent, 'channel' | 'provider'> & {
  type: 'complaint' | 'hard_bounce'
  at: string
}

/**
 * The answers of one record, the events of its addresses, their source words, and the faults, each under the name of
 * its column.
 */
export type ReadAnswers = { entries: Entry[]; events: AddressEvent[]; words: ReadWord[]; details: Detail[] }

export type AnswerOptions = {
  product: string
  parse: ParseOptions
  /** The time of refusals without their own time. With null, such a refusal is a fault of its record. */
  exportedAt: string | null
}

/** Returns the text of a record's cell, by its index. Throws if the cell is not valid UTF-8. */
export type CellReader = (index: number) => string

/**
 * Reads the answers of one record. A refusal overrides every grant, and `withhold` overrides the grants of its channel.
 * An unknown word answers nothing. `reference` is the product's identifier of the record.
 */
export function readAnswers(
  rules: PlannedRule[],
  cell: CellReader,
  reference: string,
  options: AnswerOptions,
): ReadAnswers {
  const faults = new Faults()
  const read = rules.flatMap(rule => {
    const words = faults.attempt(rule.column.name, () => wordsOf(rule, cell)) ?? []
    return words.length === 0 ? [] : [{ rule, words, word: strongest(words) }]
  })
  const entries = decide(read).flatMap(answer => {
    const entry = faults.attempt(answer.rule.column.name, () => entryOf(answer, cell, reference, options))
    return entry ? [entry] : []
  })
  // Several words of a record can report the same event.
  const events = new Map<string, AddressEvent>()
  for (const { rule, words } of read)
    for (const { channel, outcome } of words) {
      if (outcome !== 'complaint' && outcome !== 'hard_bounce') continue
      const at = faults.attempt(rule.column.name, () => timeOfRefusal(rule, cell, options))
      if (at !== undefined)
        events.set(`${channel} ${outcome} ${at}`, {
          channel,
          type: outcome,
          at,
          provider: options.product.toLowerCase(),
        })
    }
  return { entries, events: [...events.values()], words: read.flatMap(({ words }) => words), details: faults.details() }
}

type Read = { rule: PlannedRule; word: ReadWord }
type Answer = Read & { type: number; state: boolean }

/** Decides between the rules of a record: at most one answer for each consent type and channel. */
function decide(read: Read[]): Answer[] {
  const refusals = read.flatMap(({ rule, word }) => {
    const refusesAll = word.outcome === 'refuse_all' || word.outcome === 'complaint'
    const types = refusesAll ? rule.allConsentTypes : word.outcome === 'refuse' ? [rule.consentType!] : []
    return types.map(type => ({ rule, word, type, state: false }))
  })
  const withholds = ({ word }: Read) => word.outcome === 'withhold' || word.outcome === 'hard_bounce'
  const withheld = new Set(read.filter(withholds).map(({ rule }) => rule.channel))
  const grants = read
    .filter(({ rule, word }) => word.outcome === 'grant' && !withheld.has(rule.channel))
    .map(({ rule, word }) => ({ rule, word, type: rule.consentType!, state: true }))
  const answers = new Map<string, Answer>()
  for (const answer of [...refusals, ...grants]) {
    const key = `${answer.type}:${answer.rule.channel}`
    if (!answers.has(key)) answers.set(key, answer)
  }
  return [...answers.values()]
}

const strongest = (words: ReadWord[]) =>
  words.reduce((a, b) => (outcomes.indexOf(b.outcome) < outcomes.indexOf(a.outcome) ? b : a))

function wordsOf(rule: PlannedRule, cell: CellReader): ReadWord[] {
  const text = rule.status ?? valueIn(rule.column, cell)
  const words = rule.isList ? text.split(/[,;|[\]"']+/).filter(word => word.trim() !== '') : [text]
  return (words.length === 0 ? [''] : words).map(word => readWord(rule, word.trim()))
}

function readWord({ channel, column, words, isAnyWord }: PlannedRule, word: string): ReadWord {
  const read = { channel, column: column.name, word, countedAs: word }
  if (word === '') return { ...read, countedAs: '(empty)', outcome: 'none', isKnown: true }
  if (isAnyWord) return { ...read, countedAs: '(any value)', outcome: words.get('*')!, isKnown: true }
  const outcome = words.get(normalize(word))
  return { ...read, outcome: outcome ?? words.get('*') ?? 'none', isKnown: outcome !== undefined }
}

/** Returns the non-empty values of a column. A column has several if its name occurs several times. */
const valuesIn = ({ indices }: Column, cell: CellReader): string[] =>
  indices.map(index => cell(index).trim()).filter(text => text !== '')

/** Returns the first non-empty value of a column, or an empty text. */
const valueIn = (column: Column, cell: CellReader): string => valuesIn(column, cell)[0] ?? ''

/** Returns the first of the columns that has a value, with the value. */
export function firstValue(columns: Column[], cell: CellReader): { column: Column; text: string } | null {
  for (const column of columns) {
    const text = valueIn(column, cell)
    if (text !== '') return { column, text }
  }
  return null
}

function entryOf(
  { rule, word, type, state }: Answer,
  cell: CellReader,
  reference: string,
  options: AnswerOptions,
): Entry {
  const { product, parse } = options
  const evidence = state ? rule.grant : rule.refusal
  const times = timesOf(evidence.time, cell, parse)
  // If columns with the same name have several times, a grant takes the first time and a refusal the last one. The
  // order of the columns does not matter. A grant without a time may be older than any refusal that kith has, so it
  // gets none.
  const collected_at = state ? times[0] : timeOfRefusal(rule, cell, options)
  const isConfirmed = state && rule.doubleOptIn !== null && provesDoubleOptIn(rule.doubleOptIn, cell, parse)
  const ip = firstValue(evidence.ip, cell)?.text
  const quoted = [{ column: rule.column, text: word.word }]
  for (const column of evidence.source) quoted.push({ column, text: valueIn(column, cell) })
  return {
    consent_type_id: type,
    channel: rule.channel,
    state,
    ...(collected_at !== undefined && { collected_at }),
    method: isConfirmed ? 'double_opt_in' : state ? rule.method : 'import',
    source: [
      `${product} export`,
      ...quoted.filter(({ text }) => text !== '').map(({ column, text }) => `${column.name}: ${text}`),
      ...(times.length > 0 ? [] : [state ? 'no time in the export' : 'time of the export']),
    ].join('; '),
    ...(ip !== undefined && { ip }),
    ...(reference !== '' && { reference }),
  }
}

/** The time of a refusal or of an event. The latest possible time is that of the export. */
function timeOfRefusal(
  { refusal, column }: PlannedRule,
  cell: CellReader,
  { parse, exportedAt }: AnswerOptions,
): string {
  const at = timesOf(refusal.time, cell, parse).at(-1) ?? exportedAt
  if (at === null) throw buildMissingTimeFault(refusal.time, column)
  return at
}

function buildMissingTimeFault(columns: Column[], wordColumn: Column): CellFault {
  const names = columns.map(({ name }) => name).join(' and ')
  const state = columns.length > 1 ? 'are empty' : columns.length === 1 ? 'is empty' : 'has no time beside it'
  const advice = 'Name the time of the export with --exported-at'
  return new CellFault(names || wordColumn.name, `${state}, so that the refusal has no time. ${advice}`)
}

/** The sorted times of the first column that has a value. */
function timesOf(columns: Column[], cell: CellReader, parse: ParseOptions): string[] {
  const column = columns.find(each => valueIn(each, cell) !== '')
  return column
    ? valuesIn(column, cell)
        .map(text => timeOf(column, text, parse))
        .sort((a, b) => (sortableTime(a) < sortableTime(b) ? -1 : 1))
    : []
}

function timeOf(column: Column, text: string, parse: ParseOptions): string {
  try {
    return utcTime(JSON.parse(jsonOf(text, 'datetime', parse)))
  } catch (error) {
    throw new CellFault(column.name, (error as Error).message)
  }
}

/**
 * A sign-up and a later confirmation, each with an IP address, prove two acts of a person. A time of confirmation alone
 * does not: the product also sets it for contacts that were imported or that subscribed in one step.
 */
function provesDoubleOptIn(
  { asked, asked_ip, confirmed, confirmed_ip }: NonNullable<PlannedRule['doubleOptIn']>,
  cell: CellReader,
  parse: ParseOptions,
): boolean {
  const [askedAt, confirmedAt] = [valueIn(asked, cell), valueIn(confirmed, cell)]
  if ([askedAt, confirmedAt, valueIn(asked_ip, cell), valueIn(confirmed_ip, cell)].includes('')) return false
  return sortableTime(timeOf(confirmed, confirmedAt, parse)) > sortableTime(timeOf(asked, askedAt, parse))
}

/** A value that cannot be used, with the name of its column. */
class CellFault extends Error {
  readonly column: string

  constructor(column: string, message: string) {
    super(message)
    this.column = column
  }
}

/** The faults of a record. Each fault is reported once, even if several answers meet it. */
class Faults {
  readonly #messages = new Map<string, string>()

  /** Runs the work. If it throws, keeps the message under the column of the fault, or under this one. */
  attempt<T>(column: string, work: () => T): T | undefined {
    try {
      return work()
    } catch (error) {
      this.#messages.set(error instanceof CellFault ? error.column : column, (error as Error).message)
      return undefined
    }
  }

  details(): Detail[] {
    return [...this.#messages].map(([path, message]) => ({ path, message }))
  }
}
