import fc from 'fast-check'
import { beforeAll, describe, expect, it } from 'vitest'
import { type Dataset, matches, type StoredEntity } from '../../../test/support/filter-evaluator.ts'
import { personFilters } from '../../../test/support/filter-generators.ts'
import { createDataset, dates, moments, numbers, readDataset, words } from '../../../test/support/filter-world.ts'
import { someRuns } from '../../../test/support/runs.ts'
import { useOwnService } from '../../../test/support/service.ts'
import { useSharedShop } from '../../../test/support/shop.ts'
import { backfillIndexes } from '../../entities/indexes/index-backfill.ts'
import { isDate, isDateTime } from '../../values/formats.ts'
import { instantOf } from '../../values/instant.ts'

const service = useOwnService()
let dataset: Dataset
const organization = useSharedShop(service)
beforeAll(async () => {
  await createDataset(organization, 11)
  dataset = await readDataset(service, organization.id)
})

const attribute = (key: string) => `attribute_values.${key}`
const units = ['day', 'week', 'month', 'quarter', 'year'] as const
type Span = { field: string; by: (typeof units)[number]; time_zone?: string }
type Group = string | Span
type Measure = { op: string; field?: string; p?: number }

const groupFields = [
  'state',
  'first_name',
  'email_consent',
  'created_at',
  ...['city', 'score', 'vip', 'referrer', 'mixed', 'any'].map(attribute),
]
/** The names of fields of a relationship's targets. */
const across = (key: string, ...fields: string[]) => fields.map(field => `${attribute(key)}.${field}`)
const oneTarget = [
  ...across('referrer', 'id', 'state', 'first_name', 'email_consent', 'created_at'),
  ...across('referrer', ...['city', 'score', 'vip', 'any', 'referrer'].map(attribute)),
  ...across('mixed', 'external_id', attribute('city')),
]
const manyTargets = [
  ...across('friends', 'external_id', 'state', 'date_of_birth', ...['city', 'score', 'mixed'].map(attribute)),
  ...across('bought', 'record_id', ...['total', 'exact', 'buyer', 'any'].map(attribute)),
]
const spans = fc.oneof(
  fc.record({
    field: fc.constantFrom(
      'created_at',
      attribute('joined'),
      ...across('referrer', 'created_at', attribute('joined')),
      ...across('friends', 'created_at', attribute('joined')),
    ),
    by: fc.constantFrom(...units),
    time_zone: fc.constantFrom('UTC', 'Europe/Berlin', 'America/St_Johns', 'Pacific/Kiritimati'),
  }),
  fc.record({
    field: fc.constantFrom(
      'date_of_birth',
      attribute('born'),
      ...['mixed', 'friends'].flatMap(key => across(key, 'date_of_birth', attribute('born'))),
    ),
    by: fc.constantFrom(...units),
  }),
)
const groups = fc
  .array(fc.oneof(...[groupFields, oneTarget, manyTargets].map(fields => fc.constantFrom(...fields)), spans), {
    maxLength: 2,
  })
  .filter(keys => relationshipsToMany(keys).size < 2)
const scores = [attribute('score'), ...across('referrer', attribute('score'))]
const measures = fc.array(
  fc.oneof(
    fc.constant({ op: 'count' }),
    fc.constantFrom(...groupFields, ...oneTarget).map(field => ({ op: 'count', field })),
    fc.constantFrom(...groupFields, ...oneTarget, attribute('joined')).map(field => ({ op: 'count_distinct', field })),
    fc
      .tuple(fc.constantFrom('sum', 'avg', 'min', 'max', 'median'), fc.constantFrom(...scores))
      .map(([op, field]) => ({ op, field })),
    fc
      .tuple(fc.constantFrom(0, 0.007, 0.1, 0.25, 0.333, 0.5, 0.95, 1), fc.constantFrom(...scores))
      .map(([p, field]) => ({ op: 'percentile', field, p })),
    fc
      .tuple(
        fc.constantFrom('min', 'max'),
        fc.constantFrom(
          ...['first_name', 'date_of_birth', ...['city', 'joined', 'born'].map(attribute)],
          ...across('referrer', 'first_name', 'created_at', ...['city', 'joined', 'born'].map(attribute)),
        ),
      )
      .map(([op, field]) => ({ op, field })),
  ),
  { minLength: 1, maxLength: 3 },
)

type Order = { measure?: number; group?: number; direction?: 'asc' | 'desc' }
type Having = { measure: number } & Record<string, unknown>
type Selection = { having?: Having[]; sort?: Order[]; limit?: number }
type Question = Selection & { filter: unknown; group_by: Group[]; measures: Measure[] }

/** Generates selections of groups. None depends on an average, which PostgreSQL rounds. */
function selections(group_by: Group[], measures: Measure[]): fc.Arbitrary<Selection> {
  const exact = measures.flatMap(({ op }, index) => (op === 'avg' ? [] : [index]))
  const places = [...exact.map(measure => ({ measure })), ...group_by.map((_, group) => ({ group }))]
  if (places.length === 0) return fc.constant({})
  const direction = fc.constantFrom('asc', 'desc', undefined)
  const order = fc.tuple(fc.constantFrom<Order>(...places), direction).map(
    ([place, direction]): Order => ({
      ...place,
      ...(direction && { direction }),
    }),
  )
  const having = (measure: number): fc.Arbitrary<Having> => {
    const operand = fc.constantFrom(...operandsOf(measures[measure]!))
    const test = fc.oneof(
      fc.tuple(fc.constantFrom('$lt', '$lte', '$gt', '$gte', '$eq', '$neq'), operand),
      fc.tuple(fc.constantFrom('$in', '$nin'), fc.array(operand, { maxLength: 3 })),
      fc.tuple(fc.constantFrom('$eq', '$neq'), fc.constant(null)),
      fc.tuple(fc.constant('$exists'), fc.boolean()),
    )
    return fc.array(test, { minLength: 1, maxLength: 2 }).map(tests => ({ measure, ...Object.fromEntries(tests) }))
  }
  return fc.record(
    {
      ...(exact.length > 0 && {
        having: fc.array(fc.constantFrom(...exact).chain(having), { minLength: 1, maxLength: 2 }),
      }),
      sort: fc.array(order, { minLength: 1, maxLength: 3 }),
      limit: fc.integer({ min: 1, max: 6 }),
    },
    { requiredKeys: [] },
  )
}

/** The relationship that a field leads across, if any, and the field of the target. */
function partsOf(field: string): { relationship?: string; name: string } {
  const [, relationship, name] = /^attribute_values\.(referrer|mixed|friends|bought)\.(.*)$/.exec(field) ?? []
  return relationship === undefined ? { name: field } : { relationship, name: name! }
}

const isToMany = (relationship: string | undefined) => relationship === 'friends' || relationship === 'bought'

const relationshipsToMany = (keys: readonly Group[]) =>
  new Set(keys.map(key => partsOf(fieldOf(key)).relationship).filter(isToMany))

const fieldOf = (key: Group) => (typeof key === 'string' ? key : key.field)

/** The name of the field alone, without the relationship before it. */
const nameOf = (field: string | undefined) => field && partsOf(field).name

const isTimed = ({ op, field }: Measure) =>
  (op === 'min' || op === 'max') && (nameOf(field) === attribute('joined') || nameOf(field) === 'created_at')

function operandsOf(measure: Measure): readonly unknown[] {
  const { op } = measure
  const field = nameOf(measure.field)
  if ((op !== 'min' && op !== 'max') || field === attribute('score')) return numbers
  if (isTimed(measure)) return moments
  return field === 'date_of_birth' || field === attribute('born') ? dates : words
}

/** The existing targets of a relationship of a person. */
function targetsOf({ links, stack_id }: StoredEntity, relationship: string): StoredEntity[] {
  const { id } = dataset.definitions.declared.get(stack_id)!.get(relationship)!
  return (links.get(id) ?? []).map(target => dataset.entities.get(target)!)
}

/** The value of a field in a row. A field across a relationship of cardinality many is that of the row's target. */
function valueIn({ entity, target }: Row, field: string): unknown {
  const { relationship, name } = partsOf(field)
  if (relationship === undefined) return shownIn(entity, name)
  const shown = isToMany(relationship) ? target : targetsOf(entity, relationship)[0]
  return shown ? shownIn(shown, name) : null
}

/** An entity, or an entity with one of its several targets. */
type Row = { entity: StoredEntity; target?: StoredEntity | undefined }

/** The value that a read shows, or null if the entity has none. */
function shownIn({ json }: StoredEntity, field: string): unknown {
  if (!field.startsWith('attribute_values.')) return json[field]
  const values = json.attribute_values as Record<string, unknown>
  const key = field.slice('attribute_values.'.length)
  return Object.hasOwn(values, key) ? values[key] : null
}

const isTime = (field: string) => ['created_at', attribute('joined')].includes(partsOf(field).name)

/** The first day of the span that contains a value, or null for a value of another type. */
function spanOf(value: unknown, { field, by, time_zone = 'UTC' }: Span): string | null {
  if (typeof value !== 'string' || !(isTime(field) ? isDateTime(value) : isDate(value))) return null
  const day = isTime(field) ? localDay(value, time_zone) : value
  const date = new Date(`${day}T00:00:00Z`)
  if (by === 'week') date.setUTCDate(date.getUTCDate() - ((date.getUTCDay() + 6) % 7))
  if (by === 'month' || by === 'quarter' || by === 'year') date.setUTCDate(1)
  if (by === 'quarter') date.setUTCMonth(Math.floor(date.getUTCMonth() / 3) * 3)
  if (by === 'year') date.setUTCMonth(0)
  return date.toISOString().slice(0, 10)
}

function localDay(text: string, timeZone: string): string {
  const options = { timeZone, era: 'short', year: 'numeric', month: '2-digit', day: '2-digit' } as const
  const parts = new Intl.DateTimeFormat('en', options).formatToParts(new Date(instantOf(text).seconds * 1_000))
  const { era, year, month, day } = Object.fromEntries(parts.map(({ type, value }) => [type, value]))
  return `${String(era === 'BC' ? 1 - Number(year) : year).padStart(4, '0')}-${month}-${day}`
}

/** An exact decimal number: an integer with this many decimal places. */
const places = 20
function decimal(value: number | string): bigint {
  const [mantissa = '', exponent = '0'] = String(value).split('e')
  const [whole = '', fraction = ''] = mantissa.split('.')
  return BigInt(whole + fraction) * 10n ** BigInt(places - fraction.length + Number(exponent))
}

/** A number as the service prints it. */
function print(value: bigint): string {
  const digits = String(value < 0n ? -value : value).padStart(places + 1, '0')
  const fraction = digits.slice(-places).replace(/0+$/, '')
  return `${value < 0n ? '-' : ''}${digits.slice(0, -places)}${fraction === '' ? '' : `.${fraction}`}`
}

const byCodePoint = (a: string, b: string) => Buffer.compare(Buffer.from(a), Buffer.from(b))

function measureOf(entities: StoredEntity[], { op, field: path, p }: Measure): { text: string; skipped: number } {
  if (path === undefined) return { text: String(entities.length), skipped: 0 }
  const field = partsOf(path).name
  const present = entities
    .map(entity => valueIn({ entity }, path))
    .filter(value => value !== null && value !== undefined)
  if (op === 'count') return { text: String(present.length), skipped: 0 }
  if (op === 'count_distinct')
    return { text: String(new Set(present.map(value => JSON.stringify(value))).size), skipped: 0 }
  const fits = (value: unknown) =>
    field === attribute('score')
      ? typeof value === 'number'
      : typeof value === 'string' &&
        (field === attribute('joined') ? isDateTime(value) : field === attribute('born') ? isDate(value) : true)
  const fitting = present.filter(fits)
  const skipped = present.length - fitting.length
  if (fitting.length === 0) return { text: 'null', skipped }
  if (field === attribute('score')) return { text: ofNumbers(op, fitting as number[], p), skipped }
  const sorted = (fitting as string[]).toSorted(isTime(field) ? byInstant : byCodePoint)
  const [first, last] = [sorted[0]!, sorted.at(-1)!]
  const found = op === 'min' ? first : last
  return { text: JSON.stringify(field === attribute('joined') ? inUtc(found) : found), skipped }
}

function ofNumbers(op: string, values: number[], p = 0.5): string {
  const exact = values.map(decimal)
  const sum = exact.reduce((total, value) => total + value, 0n)
  if (op === 'sum') return print(sum)
  if (op === 'avg') return `about ${Number(print(sum)) / values.length}`
  const sorted = exact.toSorted((a, b) => (a < b ? -1 : a > b ? 1 : 0))
  if (op === 'min' || op === 'max') return print(sorted.at(op === 'min' ? 0 : -1)!)
  const at = Math.round(p * 1_000) * (sorted.length - 1)
  const [before, after] = [sorted[Math.floor(at / 1_000)]!, sorted[Math.ceil(at / 1_000)]!]
  return print(before + ((after - before) * BigInt(at % 1_000)) / 1_000n)
}

function byInstant(a: string, b: string): number {
  const [one, other] = [instantOf(a), instantOf(b)]
  return one.seconds - other.seconds || Number(`0.${one.fraction || 0}`) - Number(`0.${other.fraction || 0}`)
}

function inUtc(text: string): string {
  const { seconds, fraction } = instantOf(text)
  return `${new Date(seconds * 1_000).toISOString().slice(0, 19)}${fraction === '' ? '' : `.${fraction}`}Z`
}

const rank = (value: unknown) =>
  value === null
    ? 9
    : ['number', 'string', 'boolean', 'object'].indexOf(typeof value) + (Array.isArray(value) ? 0 : 0.5)

function compareKeys(a: unknown, b: unknown): number {
  if (rank(a) !== rank(b))
    return Array.isArray(a) && !Array.isArray(b) && typeof b === 'object' && b !== null ? -1 : rank(a) - rank(b)
  if (typeof a === 'number') return a - (b as number)
  if (typeof a === 'string') return byCodePoint(a, b as string)
  return typeof a === 'boolean' ? Number(a) - Number(b) : 0
}

type Expected = { by: unknown[]; measures: string[]; skipped: number[] }

function model(filter: unknown, group_by: Group[], measures: Measure[]): { groups: Expected[]; skipped: number[] } {
  const found = [...dataset.entities.values()].filter(
    entity => entity.stack_id === 0 && matches(filter, entity, dataset),
  )
  const [toMany] = relationshipsToMany(group_by)
  const rows = found.flatMap((entity): Row[] => {
    const targets = toMany === undefined ? [] : targetsOf(entity, toMany)
    return targets.length === 0 ? [{ entity }] : targets.map(target => ({ entity, target }))
  })
  const grouped = Map.groupBy(rows, row =>
    JSON.stringify(
      group_by.map(key =>
        typeof key === 'string' ? (valueIn(row, key) ?? null) : spanOf(valueIn(row, key.field), key),
      ),
    ),
  )
  if (group_by.length === 0 && found.length === 0) grouped.set('[]', [])
  const onceInGroup = (rows: readonly Row[]) => [...new Set(rows.map(({ entity }) => entity))]
  const groups = [...grouped].map(([by, rows]) => {
    const entities = onceInGroup(rows)
    const results = measures.map(measure => measureOf(entities, measure))
    return {
      by: JSON.parse(by),
      measures: results.map(({ text }) => text),
      skipped: results.map(({ skipped }) => skipped),
    }
  })
  groups.sort((a, b) => compareKeys(a.by[0] ?? null, b.by[0] ?? null) || compareKeys(a.by[1] ?? null, b.by[1] ?? null))
  const misfits = group_by.map(key => {
    if (typeof key === 'string') return 0
    const isMisfit = (row: Row) => valueIn(row, key.field) != null && spanOf(valueIn(row, key.field), key) === null
    const counted = isToMany(partsOf(key.field).relationship)
      ? rows
      : [...grouped.values()].flatMap(rows => onceInGroup(rows).map(entity => ({ entity })))
    return counted.filter(isMisfit).length
  })
  const sums = measures.map((_, index) => groups.reduce((sum, { skipped }) => sum + skipped[index]!, 0))
  return { groups, skipped: [...misfits, ...sums] }
}

/** Compares two results that are not null. */
function compareResults(measure: Measure, a: string, b: string): number {
  if (isTimed(measure)) return byInstant(JSON.parse(a), JSON.parse(b))
  if (a.startsWith('"')) return byCodePoint(JSON.parse(a), JSON.parse(b))
  const [one, other] = [decimal(a), decimal(b)]
  return one < other ? -1 : one > other ? 1 : 0
}

const isNull = (value: unknown) => value === null || value === 'null'

function passes(measure: Measure, result: string, operator: string, operand: unknown): boolean {
  if (operator === '$exists') return isNull(result) !== operand
  if (operator === '$in' || operator === '$nin')
    return (operand as unknown[]).some(each => passes(measure, result, '$eq', each)) === (operator === '$in')
  if (isNull(result) || operand === null)
    return operator === '$neq'
      ? isNull(result) !== isNull(operand)
      : operator === '$eq' && isNull(result) === isNull(operand)
  const compared = compareResults(measure, result, JSON.stringify(operand))
  const holds = { $lt: compared < 0, $lte: compared <= 0, $gt: compared > 0, $gte: compared >= 0, $eq: compared === 0 }
  return operator === '$neq' ? compared !== 0 : holds[operator as keyof typeof holds]
}

function select(groups: Expected[], measures: Measure[], { having = [], sort = [], limit }: Selection): Expected[] {
  const kept = groups.filter(group =>
    having.every(({ measure, ...tests }) =>
      Object.entries(tests).every(([operator, operand]) =>
        passes(measures[measure]!, group.measures[measure]!, operator, operand),
      ),
    ),
  )
  const compareBy = ({ measure, group, direction }: Order) => {
    const readFrom = (each: Expected) => (measure === undefined ? (each.by[group!] ?? null) : each.measures[measure]!)
    const compare = (a: unknown, b: unknown) =>
      measure === undefined ? compareKeys(a, b) : compareResults(measures[measure]!, a as string, b as string)
    return (one: Expected, other: Expected) => {
      const [a, b] = [readFrom(one), readFrom(other)]
      if (isNull(a) || isNull(b)) return Number(isNull(a)) - Number(isNull(b))
      return direction === 'desc' ? compare(b, a) : compare(a, b)
    }
  }
  // The groups are in the order of their values, and the sort is stable.
  const compares = sort.map(compareBy)
  const sorted = kept.toSorted((a, b) => compares.reduce((order, compare) => order || compare(a, b), 0))
  return sorted.slice(0, limit)
}

type Answer = { groups: { by: unknown[]; measures: unknown[] }[]; skipped: { path: string; values: number }[] }

/** Returns an answer whose numbers are the texts as sent. */
async function ask(body: object): Promise<Answer> {
  const response = await fetch(`${service.address}/v1/people/aggregate`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${organization.token}`, 'Content-Type': 'application/json' },
    body: JSON.stringify(body),
  })
  const text = await response.text()
  if (response.status !== 200) throw new Error(text)
  const exact = text.replaceAll(/"measures":\[(.*?)\]\}/g, (_, values: string) => {
    const elements = values.match(/"(?:[^"\\]|\\.)*"|[^,]+/g) ?? []
    return `"measures":${JSON.stringify(elements)}}`
  })
  return JSON.parse(exact).data
}

const roundedAverage = (expected: string, actual: string) => {
  const [wanted, found] = [Number(expected.slice('about '.length)), Number(actual)]
  return Math.abs(wanted - found) <= Math.abs(wanted) * 1e-12 + 1e-15
}

// The order of arrays and objects is undefined, but it is the same in every answer.
const isScalar = ({ by }: { by: unknown[] }) => by.every(value => typeof value !== 'object' || value === null)

async function expectModel({ filter, group_by, measures, limit, ...others }: Question) {
  const { groups: all, skipped } = model(filter, group_by, measures)
  const selection = { ...others, ...(limit !== undefined && all.every(isScalar) && { limit }) }
  const groups = select(all, measures, selection)
  const answer = await ask({ filter, group_by, measures, ...selection })
  const keyOf = ({ by }: { by: unknown[] }) => JSON.stringify(by)
  expect(answer.groups.map(keyOf).toSorted()).toEqual(groups.map(keyOf).toSorted())
  expect(answer.groups.filter(isScalar).map(keyOf)).toEqual(groups.filter(isScalar).map(keyOf))
  const expectedByKey = new Map(groups.map(group => [keyOf(group), group.measures]))
  for (const group of answer.groups)
    for (const [index, wanted] of expectedByKey.get(keyOf(group))!.entries()) {
      const actual = String(group.measures[index])
      if (wanted.startsWith('about ')) expect(roundedAverage(wanted, actual), `${wanted}: ${actual}`).toBe(true)
      else expect(actual).toBe(wanted)
    }
  const paths = [
    ...group_by.map((_, index) => `/group_by/${index}`),
    ...measures.map((_, index) => `/measures/${index}`),
  ]
  expect(answer.skipped).toEqual(
    paths.map((path, index) => ({ path, values: skipped[index]! })).filter(({ values }) => values > 0),
  )
}

describe.each(['being filled', 'filled'])('while indexes are %s', state => {
  beforeAll(async () => {
    if (state === 'filled') await backfillIndexes(service.db)
    dataset = await readDataset(service, organization.id)
  })

  it('an aggregate has exactly the groups, numbers and skipped values of the model', async () => {
    const questions = fc
      .tuple(fc.oneof(fc.constant({}), personFilters()), groups, measures)
      .chain(([filter, group_by, measures]) =>
        selections(group_by, measures).map(selection => ({ filter, group_by, measures, ...selection })),
      )
    await fc.assert(fc.asyncProperty(questions, expectModel), someRuns(400))
  })
})
