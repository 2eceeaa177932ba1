import { type Definitions, profileFieldNames, profileFields as storedFields } from '../client/index.ts'
import type { CellType } from './cell-parser.ts'
import { recognizeColumns } from './header-names.ts'
import type { Target } from './target.ts'

/**
 * The targets of a file's columns. `stateAt` is the index of the column `state` in an exported file; null in other
 * files. `constants` are cells that are appended to every record. Their targets are the last ones.
 */
export type Columns = { targets: Target[]; stateAt: number | null; notices: string[]; constants: string[] }

export type ColumnOptions = {
  /** The field of each mapped column. */
  map: Map<string, string>
  ignore: string[]
  /** Whether unknown columns become attribute values of type text. */
  unknownAsAttributes: boolean
  /** The prefix of the values, by column or field. */
  prefixes: Map<string, string>
  /** The values that every record gets, by field. */
  constants: Map<string, string>
}

const profileFields: [name: string, type: CellType][] = [
  ['external_id', 'text'],
  ...profileFieldNames.map((name): [string, CellType] => [name, storedFields[name].type]),
]
/** The fields of a person that summarize the consent answers. */
export const summaryFields = profileFieldNames.filter(name => storedFields[name].isSummary)
/** A file with all of these columns is an export. In any other file a column `state` has another meaning. */
const signature = ['state', 'version', 'created_at', 'updated_at']
/** Read-only columns of an export. The two consent flags summarize the answers, which have columns of their own. */
const readOnlyFields = [...signature, 'id', 'record_id', 'stack_key', 'mobile_e164', ...summaryFields]

/** Returns the columns of an exported file that an import ignores. Any other file has none. */
export function readOnlyColumnsOf(names: string[]): string[] {
  const isExport = signature.every(name => names.includes(name))
  return names.filter(name => isExport && readOnlyFields.includes(name))
}

/**
 * Finds the target of each column of a header in `fieldTargets`. Throws an Error if a column is unknown or two columns
 * have the same target, so that no column is silently ignored.
 */
export function columnsOf(header: string[], fieldTargets: Map<string, Target>, options: ColumnOptions): Columns {
  const names = header.map(name => name.trim())
  const missing = [...options.map.keys(), ...options.ignore].filter(name => !names.includes(name))
  if (missing.length > 0)
    throw new Error(`The file has no column ${missing.join(', ')}. Its columns are ${names.join(', ')}.`)
  for (const [name, field] of options.map)
    if (!findTarget(field, fieldTargets))
      throw new Error(`--map ${name}=${field}: there is no such field. ${listOfFields(fieldTargets)}`)
  const leftOut = readOnlyColumnsOf(names).filter(name => !options.map.has(name))
  const constantTargets = [...options.constants.keys()].map(name =>
    constantOf(name, fieldTargets, options.unknownAsAttributes),
  )
  const given = names.map(name =>
    options.ignore.includes(name) || leftOut.includes(name)
      ? nothing
      : findTarget(options.map.get(name) ?? name, fieldTargets),
  )
  const taken = [...given, ...constantTargets].flatMap(target => (target && 'name' in target ? [target.name] : []))
  const open = names.map((name, index) => (given[index] ? '' : name))
  const recognized = recognizeColumns(open, fieldTargets, taken)
  const targets = names.map(
    (name, index) =>
      given[index] ??
      recognized[index] ??
      (options.unknownAsAttributes && name ? attribute(name, name, 'text', false) : null),
  )
  const unknown = names.filter((_, index) => targets[index] === null)
  if (unknown.length > 0) throw new UnknownColumns(unknown, fieldTargets)
  throwOnDuplicates(
    [...names, ...[...options.constants.keys()].map(name => `--set ${name}`)],
    [...(targets as Target[]), ...constantTargets],
  )
  const read = recognized.flatMap((target, index) => (target ? [`${names[index]} as ${target.name}`] : []))
  const notices = [
    ...(leftOut.length > 0 ? [`Ignored read-only columns: ${leftOut.join(', ')}.`] : []),
    ...(read.length > 0 ? [`Read by their names: ${read.join(', ')}.`] : []),
  ]
  return {
    targets: [...withPrefixes(names, targets as Target[], options.prefixes), ...constantTargets],
    stateAt: leftOut.includes('state') ? names.indexOf('state') : null,
    notices,
    constants: [...options.constants.values()],
  }
}

function constantOf(name: string, fieldTargets: Map<string, Target>, unknownAsAttributes: boolean): Target {
  const target = findTarget(name, fieldTargets) ?? (unknownAsAttributes ? attribute(name, name, 'text', false) : null)
  if (target) return target
  throw new Error(
    `--set ${name}: there is no such field. Use --set attribute_values.${name}=… for an undeclared attribute.`,
  )
}

const prefixedTypes: CellType[] = ['text', 'person', 'stack']

/**
 * Adds the prefixes. A prefix applies to the column with its name, else to the column mapped to the field with its
 * name.
 */
function withPrefixes(names: string[], targets: Target[], prefixes: Map<string, string>): Target[] {
  const changed = [...targets]
  for (const [name, prefix] of prefixes) {
    const isField = (target: Target) => 'name' in target && [name, `attribute_values.${name}`].includes(target.name)
    const at = names.includes(name) ? names.indexOf(name) : targets.findIndex(isField)
    const target = changed[at]
    if (!target || target.to === 'nothing')
      throw new Error(`--prefix ${name}: the file has no such column, and no column of such a field.`)
    if (!('type' in target) || !prefixedTypes.includes(target.type))
      throw new Error(`--prefix ${name}: only texts and external identifiers can have a prefix.`)
    changed[at] = { ...target, prefix }
  }
  return changed
}

/** The target of a column that is not imported. */
export const nothing: Target = { to: 'nothing' }
const attribute = (key: string, label: string, type: CellType, many: boolean): Target => ({
  to: 'attribute',
  name: `attribute_values.${key}`,
  key,
  label,
  type,
  many,
})

/** The consents that a person can answer, each with the name of its column. */
export const answerableConsents = (types: Definitions['consent_types']) =>
  types
    .filter(({ state, mandatory }) => state === 'active' && !mandatory)
    .flatMap(({ id, name: label, channels }) =>
      channels.map(({ channel }) => ({
        name: `consents.${id}.${channel}`,
        label,
        isOnlyChannel: channels.length === 1,
        consent_type_id: id,
        channel,
      })),
    )

/** The evidence of an answer, each in a column `consents.<consent_type_id>.<channel>.<key>`. */
export const evidenceColumns: [key: string, type: CellType][] = [
  ['collected_at', 'datetime'],
  ['method', 'text'],
  ['text_version', 'number'],
  ['source', 'text'],
  ['ip', 'text'],
  ['user_agent', 'text'],
  ['reference', 'text'],
  ['consent_string', 'text'],
]

/** Maps all possible column names to fields. A declared attribute can also have its bare key as column name. */
export function targetsOf(owner: string, { attributes, consent_types }: Definitions): Map<string, Target> {
  const fieldTargets = new Map<string, Target>()
  const own = attributes.filter(each => each.owner === owner && each.state === 'active')
  for (const { key, name, type, cardinality } of own) {
    const target = attribute(key, name, type, cardinality === 'many')
    fieldTargets.set(key, target)
    fieldTargets.set(`attribute_values.${key}`, target)
  }
  fieldTargets.set('attribute_values', { to: 'attributes', name: 'attribute_values' })
  const fields = owner === 'people' ? profileFields : profileFields.slice(0, 1)
  // A profile field takes precedence over a declared attribute of the same key.
  for (const [key, type] of fields) fieldTargets.set(key, { to: 'field', name: key, key, type })
  if (owner !== 'people') return fieldTargets
  fieldTargets.set('consents', { to: 'consents', name: 'consents' })
  for (const answerable of answerableConsents(consent_types)) {
    const { name: consent } = answerable
    fieldTargets.set(consent, { to: 'consent', ...answerable })
    for (const [key, type] of evidenceColumns) {
      const name = `${consent}.${key}`
      fieldTargets.set(name, { to: 'evidence', name, consent, key, type })
    }
  }
  return fieldTargets
}

/** Finds the target of a field. Any key of `attribute_values` is a field. */
export function findTarget(field: string, fieldTargets: Map<string, Target>): Target | null {
  const key = /^attribute_values\.(.+)$/.exec(field)?.[1]
  return fieldTargets.get(field) ?? (key === undefined ? null : attribute(key, key, 'text', false))
}

/** The error for columns of a header that are no fields. Its message names the options of the command line. */
export class UnknownColumns extends Error {
  readonly names: readonly string[]
  /** A sentence that lists the fields. */
  readonly fields: string

  constructor(names: readonly string[], fieldTargets: Map<string, Target>) {
    const fields = listOfFields(fieldTargets)
    super(
      `${noFields(names)} Map a column with --map ` +
        'column=field, import all of them as attribute values with --attributes rest, or ignore one with --ignore column. ' +
        fields,
    )
    this.names = names
    this.fields = fields
  }
}

/** Says that the columns are no fields. */
export function noFields(names: readonly string[]): string {
  const named = names.map(name => JSON.stringify(name)).join(', ')
  return names.length > 1 ? `The columns ${named} are not fields.` : `The column ${named} is not a field.`
}

const listOfFields = (fieldTargets: Map<string, Target>) =>
  `The fields are ${[...fieldTargets.keys()].filter(name => !name.startsWith('attribute_values.')).join(', ')}, and attribute_values.<any key>.`

function throwOnDuplicates(names: string[], targets: Target[]) {
  const columnByTarget = new Map<string, string>()
  for (const [index, target] of targets.entries()) {
    if (target.to === 'nothing') continue
    const other = columnByTarget.get(target.name)
    if (other !== undefined)
      throw new Error(`The columns ${other} and ${names[index]} are both ${target.name}. Ignore or map one of them.`)
    columnByTarget.set(target.name, names[index]!)
  }
}
