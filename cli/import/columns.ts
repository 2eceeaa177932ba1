import type { Definitions } from '../../client/index.ts'
import type { CellType } from './cell-parser.ts'

/** What becomes of the cells of a column. */
export type Target =
  | { to: 'nothing' }
  | { to: 'field'; name: string; key: string; type: CellType; prefix?: string }
  | { to: 'attribute'; name: string; key: string; type: CellType; many: boolean; prefix?: string }
  | { to: 'consent'; name: string; consent_type_id: number; channel: string }
  | { to: 'attributes'; name: string }
  | { to: 'consents'; name: string }

/**
 * `stateAt` is the column of an exported entity's state; null in any other file. `constants` are cells that every record
 * has behind its own; the last targets are theirs.
 */
export type Columns = { targets: Target[]; stateAt: number | null; notices: string[]; constants: string[] }

export type ColumnOptions = {
  /** Columns by their names, and the fields that were named for them. */
  map: Map<string, string>
  ignore: string[]
  /** Columns that nobody knows become attribute values: texts. */
  rest: boolean
  /** Columns or fields, and what is put before each of their values. */
  prefixes: Map<string, string>
  /** Fields, and the value that each of them has in every record. */
  constants: Map<string, string>
}

const profileFields: Record<string, CellType> = {
  external_id: 'text',
  first_name: 'text',
  last_name: 'text',
  email: 'text',
  mobile_prefix: 'text',
  mobile_number: 'text',
  date_of_birth: 'date',
  language: 'text',
  email_consent: 'boolean',
  sms_consent: 'boolean',
  push_notification_consent: 'boolean',
}
/** Only an export has all of these: no other file's `state` is one of ours. */
const signature = ['state', 'version', 'created_at', 'updated_at']
/** What only a read has; the two flags are the summary of the answers, which are exported too. */
const ofReads = [...signature, 'id', 'record_id', 'stack_key', 'email_consent', 'sms_consent']

/**
 * What each column of a header stands for. Throws, in a sentence for the person, where one is unknown, or two are one:
 * nothing of the file is left out without a word.
 */
export function columnsOf(header: string[], owner: string, definitions: Definitions, wishes: ColumnOptions): Columns {
  const names = header.map(name => name.trim())
  const missing = [...wishes.map.keys(), ...wishes.ignore].filter(name => !names.includes(name))
  if (missing.length > 0)
    throw new Error(`The file has no column ${missing.join(', ')}. Its columns are ${names.join(', ')}.`)
  const isExport = signature.every(name => names.includes(name))
  const known = targetsOf(owner, definitions)
  const leftOut = names.filter(name => isExport && ofReads.includes(name) && !wishes.map.has(name))
  const targets = names.map(name => {
    if (wishes.ignore.includes(name) || leftOut.includes(name)) return nothing
    return (
      targetOf(wishes.map.get(name) ?? name, known) ?? (wishes.rest && name ? attribute(name, 'text', false) : null)
    )
  })
  const unknown = names.filter((_, index) => targets[index] === null)
  if (unknown.length > 0) throw new Error(unknownColumns(unknown, known))
  const set = [...wishes.constants.keys()].map(name => constantOf(name, known, wishes.rest))
  refuseDoubles(
    [...names, ...[...wishes.constants.keys()].map(name => `--set ${name}`)],
    [...(targets as Target[]), ...set],
  )
  const notices = leftOut.length > 0 ? [`left out, for only a read has them: ${leftOut.join(', ')}`] : []
  return {
    targets: [...withPrefixes(names, targets as Target[], wishes.prefixes), ...set],
    stateAt: leftOut.includes('state') ? names.indexOf('state') : null,
    notices,
    constants: [...wishes.constants.values()],
  }
}

function constantOf(name: string, known: Map<string, Target>, rest: boolean): Target {
  const target = targetOf(name, known) ?? (rest ? attribute(name, 'text', false) : null)
  if (target) return target
  throw new Error(
    `--set ${name}: there is no such field. Say --set attribute_values.${name}=… for an undeclared attribute.`,
  )
}

const prefixedTypes: CellType[] = ['text', 'person', 'stack']

/** A prefix belongs to the column of that name, else to the one that stands for that field. */
function withPrefixes(names: string[], targets: Target[], prefixes: Map<string, string>): Target[] {
  const changed = [...targets]
  for (const [name, prefix] of prefixes) {
    const isField = (target: Target) => 'name' in target && [name, `attribute_values.${name}`].includes(target.name)
    const at = names.includes(name) ? names.indexOf(name) : targets.findIndex(isField)
    const target = changed[at]
    if (!target || target.to === 'nothing')
      throw new Error(`--prefix ${name}: the file has no such column, and none that stands for such a field.`)
    if (!('type' in target) || !prefixedTypes.includes(target.type))
      throw new Error(`--prefix ${name}: only texts and external identifiers take a prefix.`)
    changed[at] = { ...target, prefix }
  }
  return changed
}

const nothing: Target = { to: 'nothing' }
const attribute = (key: string, type: CellType, many: boolean): Target => ({
  to: 'attribute',
  name: `attribute_values.${key}`,
  key,
  type,
  many,
})

/** Every field that a column may have the name of. A declared attribute also goes by its bare key. */
function targetsOf(owner: string, { attributes, consent_types }: Definitions): Map<string, Target> {
  const known = new Map<string, Target>()
  for (const { key, type, cardinality } of attributes.filter(each => each.owner === owner && each.state === 'active')) {
    const target = attribute(key, type, cardinality === 'many')
    known.set(key, target)
    known.set(`attribute_values.${key}`, target)
  }
  known.set('attribute_values', { to: 'attributes', name: 'attribute_values' })
  const fields = owner === 'people' ? Object.entries(profileFields) : [['external_id', 'text'] as const]
  // A profile field has the name for itself, whatever is declared.
  for (const [key, type] of fields) known.set(key, { to: 'field', name: key, key, type })
  if (owner !== 'people') return known
  known.set('consents', { to: 'consents', name: 'consents' })
  for (const { id, channels, state } of consent_types.filter(each => each.state === 'active' && !each.mandatory))
    for (const { channel } of channels) {
      const name = `consents.${id}.${channel}`
      if (state === 'active') known.set(name, { to: 'consent', name, consent_type_id: id, channel })
    }
  return known
}

function targetOf(field: string, known: Map<string, Target>): Target | null {
  const key = /^attribute_values\.(.+)$/.exec(field)?.[1]
  return known.get(field) ?? (key === undefined ? null : attribute(key, 'text', false))
}

function unknownColumns(unknown: string[], known: Map<string, Target>): string {
  const [some, them] = unknown.length > 1 ? ['The columns', 'are no fields'] : ['The column', 'is no field']
  return (
    `${some} ${unknown.map(name => JSON.stringify(name)).join(', ')} ${them}. Name a field by --map column=field, take ` +
    'all of them as attribute values by --attributes rest, or leave one out by --ignore column. The fields are ' +
    `${[...known.keys()].filter(name => !name.startsWith('attribute_values.')).join(', ')}, and attribute_values.<any key>.`
  )
}

function refuseDoubles(names: string[], targets: Target[]) {
  const taken = new Map<string, string>()
  for (const [index, target] of targets.entries()) {
    if (target.to === 'nothing') continue
    const other = taken.get(target.name)
    if (other !== undefined) throw new Error(`The columns ${other} and ${names[index]} are both ${target.name}.`)
    taken.set(target.name, names[index]!)
  }
}
