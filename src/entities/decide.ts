import { type Answer, currentAnswers } from '../consents/answers.ts'
import { type Detail, pointer, type Refusal, refuse } from '../errors.ts'
import { type Definitions, peopleStackId } from '../organizations/definitions.ts'
import { type ConsentChange, decideAnswers, type Shown } from './decide-answers.ts'
import { type AttributeChange, decideAttributes } from './decide-attributes.ts'
import { type Columns, type CurrentState, type EntityRow, profileColumns } from './entity-row.ts'
import { isRetry, type Name, nameKey, nameTaken, type Plan } from './plan-write.ts'
import { profileFlags, profileTexts } from './sql.ts'
import { isCompleting, isMaking, type Write } from './write-request.ts'

/** The limits that a decision is bound by: counts, and bytes of the entity's JSON. */
export type DecisionLimits = { entityKeys: number; entityBytes: number; placeholders: number }

/** What a decision stands on besides the entity itself. */
export type Circumstances = {
  definitions: Definitions
  /** The internal identifier of the entity that bears a name; undefined where nobody does. */
  bearer: (name: Name) => string | undefined
  /** The version at which a name was left by the last entity that had it; 0 where nobody has left it. */
  leftAt: (name: Name) => number
  /** RFC 3339, UTC, milliseconds. */
  at: string
  /** The internal identifier a new entity takes. */
  newId: () => string
  limits: DecisionLimits
}

/**
 * An effective write, ready to be stored and logged. `before` and `after` hold the keys that changed, as a read shows them;
 * before a creation there was nothing, which is null.
 */
export type Change = AttributeChange & {
  operation: 'create' | 'update' | 'delete'
  id: string
  /** As it will be. */
  external_id: string | null
  version: number
  columns: Columns
  answers: Answer[]
  before: Record<string, unknown> | null
  after: Record<string, unknown>
}

export type Decision = { refusal: Refusal } | { unchanged: EntityRow } | { change: Change }

/**
 * The rules of every write: what stands and what is asked, to a refusal, nothing, or a change. Pure: it reads no clock,
 * makes no identifier and touches no database, so one request and an import are decided alike.
 */
export function decide(
  standing: CurrentState | null,
  write: Write,
  plan: Plan,
  circumstances: Circumstances,
): Decision {
  const refusal = refuseByKind(write, circumstances.definitions) ?? refuseByState(standing, write)
  if (refusal) return { refusal }
  if (standing?.row.active && isRetry(write, circumstances.definitions))
    return decideRetry(standing, write, plan, circumstances)
  if (standing?.row.active && write.operation === 'create') return { refusal: duplicate() }
  if (standing && write.operation === 'delete') return { change: deletion(standing, circumstances) }
  const decision = decideBody(standing, write, plan, circumstances)
  if (write.create_only && standing?.row.active && 'change' in decision)
    return { refusal: conflict('The entity exists already, and the import creates only.') }
  return decision
}

/** Event records are immutable. Deleting one is erasure, not update. */
function refuseByKind({ operation, stack_id }: Write, { stacks }: Definitions): Refusal | undefined {
  if (operation === 'create' || operation === 'import' || operation === 'delete') return undefined
  if (!stacks.some(stack => stack.id === stack_id && stack.kind === 'event')) return undefined
  const headers = { Allow: 'GET, HEAD, DELETE' }
  return refuse('invalid_parameter', 'Records of an event stack cannot be updated.', { status: 405, headers })
}

/** An event sent again is the same event when replacing what stands by it would change nothing. */
function decideRetry(standing: CurrentState, write: Write, plan: Plan, circumstances: Circumstances): Decision {
  const replacing = decideBody(standing, { ...write, operation: 'put' }, { ...plan, clearsRest: true }, circumstances)
  return 'change' in replacing ? { refusal: conflict('This event is already stored with other content.') } : replacing
}

function refuseByState(standing: CurrentState | null, write: Write): Refusal | undefined {
  if (!standing && !isMaking(write)) {
    const kind = write.stack_id === peopleStackId ? 'person' : 'record'
    return refuse('not_found', `There is no such ${kind}.`)
  }
  const { if_match } = write
  if (if_match && !(standing && (if_match === '*' || if_match.includes(standing.row.version))))
    return refuse('invalid_parameter', 'The entity is at another version than If-Match names.', { status: 412 })
  return undefined
}

/** What is stored under the name stays as it is. */
function conflict(message: string): Refusal {
  const details = [{ path: pointer('external_id'), message: 'is stored already, with other content' }]
  return refuse('duplicate_entry', message, { details })
}

function duplicate(): Refusal {
  const details = [{ path: pointer('external_id'), message: 'is the external identifier of another entity' }]
  return refuse('duplicate_entry', 'The external identifier is taken.', { details })
}

function decideBody(standing: CurrentState | null, write: Write, plan: Plan, circumstances: Circumstances): Decision {
  const { definitions, bearer, leftAt, at, newId, limits } = circumstances
  const row = standing?.row
  const id = row?.id ?? newId()
  const taken = nameTaken(write)
  if (taken && (bearer(taken) ?? id) !== id) return { refusal: duplicate() }

  const faults = [...plan.faults]
  const columns = profileChanges(row, write)
  const known = plan.links.size === 0 ? bearer : withOwnNames(bearer, id, row, write)
  const attributes = decideAttributes(standing, plan, known, definitions, limits.entityBytes)
  faults.push(...attributeFaults(write, attributes, limits))
  const { answers, consents } = decideAnswers(row, write, definitions, at, columns, faults)
  if (faults.length > 0)
    return { refusal: refuse('invalid_parameter', 'The request breaks a rule.', { details: faults }) }

  const completed = isCompleting(write, row)
  const effective = Object.keys(columns).length > 0 || attributes.changed || answers.length > 0 || completed
  if (row && !effective) return { unchanged: row }
  if (!row?.active) columns.active = true
  const version = (row?.version ?? versionBefore(write, columns, leftAt)) + 1
  return {
    change: {
      ...attributes,
      operation: row ? 'update' : 'create',
      id,
      external_id: columns.external_id === undefined ? (row?.external_id ?? null) : columns.external_id,
      version,
      columns: { ...columns, version },
      answers,
      ...describe(row, columns, attributes, consents),
    },
  }
}

/** A new entity goes on from where the last one of its name left it, so that no If-Match of that one holds. */
function versionBefore({ stack_id }: Write, { external_id }: Columns, leftAt: Circumstances['leftAt']): number {
  return external_id ? leftAt({ stack_id, external_id }) : 0
}

/** Within a write that renames its entity, both its names mean itself: a link to either must not make a placeholder. */
function withOwnNames(
  bearer: Circumstances['bearer'],
  id: string,
  row: EntityRow | undefined,
  { stack_id, body }: Write,
): Circumstances['bearer'] {
  const own = new Set([body.external_id, row?.external_id].map(name => nameKey({ stack_id, external_id: name ?? '' })))
  return name => (own.has(nameKey(name)) ? id : bearer(name))
}

const givenColumns = [...profileColumns, 'external_id'] as const

/** The plain columns that differ. PUT clears what it omits, but an omitted external identifier stays. */
function profileChanges(row: EntityRow | undefined, { operation, body }: Write): Columns {
  const changes: Record<string, unknown> = {}
  for (const column of givenColumns) {
    const given = body[column]
    if (given === undefined && (operation !== 'put' || column === 'external_id')) continue
    const value = given ?? null
    if (value !== (row?.[column] ?? null)) changes[column] = value
  }
  return changes
}

function attributeFaults(write: Write, attributes: AttributeChange, limits: DecisionLimits): Detail[] {
  const { missing, changed, keyCount, isTooLarge } = attributes
  const refuseAll = (message: string) => [{ path: pointer('attribute_values'), message }]
  if (write.references === 'strict' && missing.length > 0)
    return missing.map(({ pointer: path }) => ({ path, message: 'names an entity that does not exist' }))
  if (missing.length > limits.placeholders && countNames(missing) > limits.placeholders)
    return refuseAll(`would create more than ${limits.placeholders} placeholders`)
  if (changed && keyCount > limits.entityKeys)
    return refuseAll(`would leave the entity with more than ${limits.entityKeys} attribute values`)
  if (isTooLarge) return refuseAll(`would leave the entity larger than ${limits.entityBytes} bytes`)
  return noFaults
}

const noFaults: Detail[] = []

const countNames = (missing: AttributeChange['missing']) => new Set(missing.map(({ name }) => nameKey(name))).size

const shownColumns = ['external_id', ...profileTexts, ...profileFlags] as const
/** In the order in which jsonb keeps them, shorter ones first: PostgreSQL takes 0.8 µs less for keys that it need not sort. */
const entryKeys = ([...shownColumns, 'state', 'attribute_values', 'consents'] as const).toSorted(
  (one, other) => one.length - other.length || (one < other ? -1 : 1),
)

/** The change log's view of a change: every key that differs, before and after, as a read names and shows it. */
function describe(
  row: EntityRow | undefined,
  columns: Columns,
  attributes: AttributeChange,
  consents: ConsentChange | undefined,
): { before: Shown | null; after: Shown } {
  const after: Shown = {}
  for (const key of entryKeys) {
    let value: unknown
    if (key === 'state') value = columns.active ? 'active' : undefined
    else if (key === 'attribute_values') value = attributes.changed ? attributes.after : undefined
    else if (key === 'consents') value = consents?.after
    else value = columns[key]
    if (value !== undefined) after[key] = value
  }
  return { before: row ? describeBefore(row, after, attributes, consents) : null, after }
}

/** What the keys of `after` held. */
function describeBefore(
  row: EntityRow,
  after: Shown,
  attributes: AttributeChange,
  consents: ConsentChange | undefined,
): Shown {
  const before: Shown = {}
  for (const key in after) {
    if (key === 'state') before[key] = 'placeholder'
    else if (key === 'attribute_values') before[key] = attributes.before
    else if (key === 'consents') before[key] = consents?.before
    else before[key] = row[key as keyof EntityRow] ?? null
  }
  return before
}

/** A deletion's entry holds all that stood; the histories of consents and changes stay beside it. */
function deletion(standing: CurrentState, { definitions, bearer }: Circumstances): Change {
  const { row } = standing
  const nothing: Plan = { plain: new Map(), links: new Map(), clearsRest: true, faults: [] }
  const attributes = decideAttributes(standing, nothing, bearer, definitions, Number.POSITIVE_INFINITY)
  const before: Shown = { state: row.active ? 'active' : 'placeholder' }
  for (const column of ['external_id', ...profileColumns, 'email_consent', 'sms_consent'] as const)
    if (row[column] !== null) before[column] = row[column]
  if (attributes.changed) before.attribute_values = attributes.before
  const consents = currentAnswers(row.answers)
  if (consents.length > 0) before.consents = consents
  return {
    ...attributes,
    operation: 'delete',
    id: row.id,
    external_id: row.external_id,
    version: row.version + 1,
    columns: {},
    answers: [],
    before,
    after: {},
  }
}
