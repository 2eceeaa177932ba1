import type { Definitions } from '../../client/index.ts'
import { phoneColumns } from '../../src/values/profile-fields.ts'
import type { OffsetOf } from '../../transfer/cell-parser.ts'
import {
  answerableConsents,
  type ColumnOptions,
  type Columns,
  columnsOf,
  findTarget,
  targetsOf,
} from '../../transfer/columns.ts'
import { normalize } from '../../transfer/normalize-name.ts'
import {
  type Column,
  isTimed,
  type PhoneSplitter,
  type PlannedRule,
  type ProfilePlan,
} from '../../transfer/profile-answers.ts'
import type { Profile, Rule } from './profile-file.ts'

export type ProfileOptions = {
  profile: Profile
  /** Whether the identifier of the product or the email address becomes the external identifier. */
  externalId: 'id' | 'email'
  /** The key of the consent type of a channel or of a column. */
  consentTypes: Map<string, string>
  /** The status of the whole file, if the profile has statuses. */
  status: string | null
  exportedAt: string | null
  /** The time zone of the profile, for times without an offset. */
  timeZone: OffsetOf | null
  splitPhone: PhoneSplitter
}

/**
 * Finds the columns of a profile in the header, beside the columns of the other options. The import leaves out any
 * other column, unless it has the key of a declared attribute. Throws an Error if the file has no answers or its
 * answers have no consent type.
 */
export function profileColumnsOf(
  header: string[],
  definitions: Definitions,
  columnOptions: ColumnOptions,
  options: ProfileOptions,
): Columns & { profile: ProfilePlan } {
  const names = header.map(name => name.trim())
  const { profile } = options
  const find = finderOf(names, columnOptions.ignore)
  const ownTargets = new Set([...columnOptions.map.values(), ...columnOptions.constants.keys()])
  const targets = targetsOf('people', definitions)
  const reference = find(profile.external_id.columns)
  const plan: Omit<ProfilePlan, 'leftOut'> = {
    product: profile.product,
    exportedAt: options.exportedAt,
    timeZone: options.timeZone,
    reference,
    externalId: ownTargets.has('external_id') ? null : externalIdOf(options, find, reference),
    fields: Object.entries(profile.fields).flatMap(([field, columns]) => {
      const target = findTarget(field, targets)
      const found = find(columns)
      const isUsed = target && target.to !== 'nothing' && found.length > 0 && !ownTargets.has(field)
      return isUsed ? [{ columns: found, target }] : []
    }),
    phone: phoneColumns.some(field => ownTargets.has(field)) ? [] : find(profile.phone?.columns ?? []),
    splitPhone: options.splitPhone,
    rules: profile.answers.flatMap(rule => plannedRules(rule, names, find, definitions, options)),
  }
  throwOnUnusableRules(plan.rules, options)
  const read = new Set(columnsRead(plan).flatMap(({ indices }) => indices.map(index => names[index]!)))
  const others = names.filter(
    name => !read.has(name) && !columnOptions.map.has(name) && !columnOptions.ignore.includes(name),
  )
  const isAttribute = (name: string) => targets.get(name)?.to === 'attribute'
  const kept = others.filter(name => isAttribute(name) || (columnOptions.unknownAsAttributes && name !== ''))
  const leftOut = [...new Set(others.filter(name => !kept.includes(name)))]
  const columns = columnsOf(header, targets, {
    ...columnOptions,
    // If a column of the product is called like a field, such as email_consent, it still is not this field.
    map: new Map([...kept.map((name): [string, string] => [name, `attribute_values.${name}`]), ...columnOptions.map]),
    ignore: [...columnOptions.ignore, ...[...read].filter(name => !columnOptions.map.has(name)), ...leftOut],
  })
  return { ...columns, profile: { ...plan, leftOut: leftOut.filter(name => name !== '') } }
}

type Finder = (columns: string[]) => Column[]

/** Returns a function that finds columns by name, in the order of the names. It skips ignored columns. */
function finderOf(names: string[], ignored: string[]): Finder {
  const normalized = names.map(name => (ignored.includes(name) ? null : normalize(name)))
  return columns =>
    columns.flatMap(column => {
      const indices = normalized.flatMap((name, index) => (name === normalize(column) ? [index] : []))
      return indices.length > 0 ? [{ name: names[indices[0]!]!, indices }] : []
    })
}

function externalIdOf({ profile, externalId }: ProfileOptions, find: Finder, reference: Column[]) {
  if (externalId === 'id') {
    if (reference.length > 0) return { columns: reference, prefix: profile.external_id.prefix ?? '', isEmail: false }
    throw new Error(
      `The file has no column ${profile.external_id.columns.join(' or ')}, of which the external_id is made. Use ` +
        '--external-id email, for this file and for all others with the same people, or --map "<column>=external_id".',
    )
  }
  const columns = find(profile.fields.email ?? [])
  if (columns.length > 0) return { columns, prefix: '', isEmail: true }
  throw new Error(`The file has no column ${(profile.fields.email ?? ['of email addresses']).join(' or ')}.`)
}

/**
 * Plans each rule for each file column that it names. A name that ends with * stands for all columns that begin with
 * it. Each of several columns with the same name gets a rule, so that none hides the words of another.
 */
function plannedRules(
  rule: Rule,
  names: string[],
  find: Finder,
  definitions: Definitions,
  options: ProfileOptions,
): PlannedRule[] {
  const begin = rule.column?.endsWith('*') ? normalize(rule.column.slice(0, -1)) : null
  const named = begin === null ? [rule.column!] : new Set(names.map(normalize).filter(name => name.startsWith(begin)))
  const columns = rule.status
    ? [{ name: 'status', indices: [] }]
    : find([...named]).flatMap(({ indices }) => indices.map(index => ({ name: names[index]!, indices: [index] })))
  const words = new Map(
    Object.entries(rule.words).map(([word, outcome]) => [word === '*' ? '*' : normalize(word), outcome]),
  )
  const evidence = ({ time = [], ip = [], source = [] }: NonNullable<Rule['refusal']>) => ({
    time: find(time),
    ip: find(ip),
    source: find(source),
  })
  const doubleOptIn = rule.double_opt_in && {
    asked: find([rule.double_opt_in.asked])[0],
    asked_ip: find([rule.double_opt_in.asked_ip])[0],
    confirmed: find([rule.double_opt_in.confirmed])[0],
    confirmed_ip: find([rule.double_opt_in.confirmed_ip])[0],
  }
  return columns.map(column => ({
    channel: rule.channel,
    column,
    status: rule.status ? options.status : null,
    isList: rule.list ?? false,
    isAnyWord: words.has('*') && words.size === 1,
    words,
    consentType: consentTypeOf(rule, column, begin !== null, definitions, options),
    allConsentTypes: answerableConsents(definitions.consent_types)
      .filter(({ channel }) => channel === rule.channel)
      .map(({ consent_type_id }) => consent_type_id),
    grant: evidence(rule),
    refusal: evidence(rule.refusal ?? rule),
    method: rule.method ?? 'import',
    doubleOptIn:
      // If two columns have the same name, kith cannot know which one is the proof.
      doubleOptIn && Object.values(doubleOptIn).every(found => found?.indices.length === 1)
        ? (doubleOptIn as NonNullable<PlannedRule['doubleOptIn']>)
        : null,
  }))
}

/** The consent type that a rule answers: set for its column, else for its channel, else the channel's default. */
function consentTypeOf(
  { channel, words }: Rule,
  column: Column,
  needsOwn: boolean,
  { consent_types }: Definitions,
  { consentTypes }: ProfileOptions,
): number | null {
  if (!Object.values(words).some(outcome => outcome === 'grant' || outcome === 'refuse')) return null
  const answerable = consent_types.filter(
    type => type.state === 'active' && !type.mandatory && type.channels.some(entry => entry.channel === channel),
  )
  const keys = answerable.map(({ key }) => key).join(', ') || 'none'
  const named = new Map([...consentTypes].map(([name, key]) => [normalize(name), key]))
  const key = named.get(normalize(column.name)) ?? (needsOwn ? undefined : named.get(channel))
  if (key !== undefined) {
    const type = answerable.find(type => type.key === key)
    if (type) return type.id
    throw new Error(
      `${key} is no consent type that a person can answer on the channel ${channel}. Those of ${channel} are: ${keys}.`,
    )
  }
  if (needsOwn)
    throw new Error(
      `The column ${JSON.stringify(column.name)} has no consent type. Name one with --consent-type "${column.name}=<key>", or ` +
        `leave the column out with --ignore "${column.name}". The consent types of ${channel} are: ${keys}.`,
    )
  const byDefault = answerable.find(type => type.channels.some(entry => entry.channel === channel && entry.is_default))
  if (byDefault) return byDefault.id
  throw new Error(
    `No consent type is the default of the channel ${channel}. Name one with --consent-type ${channel}=<key>, or leave the ` +
      `column out with --ignore "${column.name}". The consent types of ${channel} are: ${keys}.`,
  )
}

function throwOnUnusableRules(rules: PlannedRule[], { profile, consentTypes, exportedAt }: ProfileOptions) {
  if (rules.length === 0) {
    const columns = profile.answers.map(({ column }) => column)
    throw new Error(
      `The file has no column with answers. The profile of ${profile.product} reads: ${columns.join(', ')}. Export the ` +
        'file with them, or name your columns in a copy of the profile.',
    )
  }
  const known = new Set(rules.flatMap(({ column, channel }) => [normalize(column.name), channel as string]))
  const unknown = [...consentTypes.keys()].find(name => !known.has(normalize(name)))
  if (unknown !== undefined)
    throw new Error(
      `--consent-type ${unknown}: this is neither a channel nor a column with answers. Those of the file are ${[...known].join(', ')}.`,
    )
  const untimed = rules.find(({ words, status, refusal }) => {
    const outcomes = status === null ? [...words.values()] : [words.get(normalize(status)) ?? 'none']
    return refusal.time.length === 0 && outcomes.some(isTimed)
  })
  if (untimed && exportedAt === null)
    throw new Error(
      `The file has no time of the refusals and bounces in ${untimed.column.name}. Name the time of the export with --exported-at, ` +
        'such as --exported-at 2026-01-31T09:00:00Z: they count from then.',
    )
}

function columnsRead({ reference, externalId, fields, phone, rules }: Omit<ProfilePlan, 'leftOut'>): Column[] {
  return [
    ...reference,
    ...(externalId?.columns ?? []),
    ...fields.flatMap(field => field.columns),
    ...phone,
    ...rules.flatMap(({ column, grant, refusal, doubleOptIn }) => [
      column,
      ...[grant, refusal].flatMap(({ time, ip, source }) => [...time, ...ip, ...source]),
      ...Object.values(doubleOptIn ?? {}),
    ]),
  ]
}
