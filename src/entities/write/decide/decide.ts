import { type Answer, currentAnswers } from '../../../consents/answers.ts'
import { type Definitions, peopleStackId } from '../../../organizations/definitions.ts'
import type { Operation } from '../../../organizations/logged-changes.ts'
import { buildOtherVersionRefusal, meetsIfMatch } from '../../../route/entity-tag.ts'
import { accessOf } from '../../../route/field-rights.ts'
import { createRefusal, type Detail, pointer, type Refusal } from '../../../values/errors.ts'
import { findInvisible } from '../../../values/invisible-characters.ts'
import { notANumber, readPhone } from '../../../values/phone-numbers.ts'
import { phoneColumns, plainColumns, profileFlags, profileTexts } from '../../../values/profile-fields.ts'
import {
  type Columns,
  type CurrentState,
  type EntityRow,
  isShown,
  relationshipValue,
  shownTargets,
  type Target,
} from '../../entity-row.ts'
import type { DeletedEntity } from '../../past/past-state.ts'
import { canCreate, isCompleting, type Write } from '../../write-request.ts'
import { aliasOf, isRetry, type Name, nameKey, newNameOf, type Plan } from '../plan.ts'
import { claimsOf, type Holders, takenRefusal } from '../unique.ts'
import { type ConsentChange, decideAnswers, type FieldValues, type KnownAnswers } from './answers.ts'
import {
  type AttributeChange,
  type AttributeFill,
  decideAttributes,
  emptyChange,
  fillAttributes,
  type Resolve,
} from './attributes.ts'

/** Limits of one entity: number of attribute values, bytes of its JSON, and new placeholders per write. */
export type DecisionLimits = { entityKeys: number; entityBytes: number; placeholders: number }

/** The inputs of the decisions of a set besides the entities and the writes. */
export type DecisionContext = {
  definitions: Definitions
  /**
   * Returns the internal identifier of the entity with this name or internal identifier. Undefined if it does not
   * exist.
   */
  resolve: Resolve
  /** The entities that the items refer to by an alias or an internal identifier, by {@link referenceKey}. */
  otherwiseNamed?: ReadonlyMap<string, Target>
  /** Returns the highest version at which an entity released this name; 0 if none did. */
  lastVersionOf: (name: Name) => number
  knownAnswers: KnownAnswers
  /** RFC 3339, UTC, milliseconds. */
  at: string
  /** Generates the internal identifier of the entity that a write creates. */
  newId: (write: Write) => string
  limits: DecisionLimits
  /** The deleted entity that a restore brings back. */
  deleted?: DeletedEntity | undefined
  /** The entities that have the unique values of the writes. */
  holders?: Holders | undefined
}

/**
 * An effective write, ready to be stored and logged. `before` and `after` hold the changed fields in the format of a
 * read. `before` is null for a creation, a restore and an unmerge.
 */
export type Change = AttributeChange & {
  operation: Operation
  id: string
  /** The external identifier after the write. */
  external_id: string | null
  version: number
  columns: Columns
  answers: Answer[]
  before: Record<string, unknown> | null
  after: Record<string, unknown>
  /** The time of the creation of an entity that comes back. */
  created_at?: string
  /** Warnings about values that are stored as sent although their field expects others. */
  warnings?: readonly Detail[]
  /** New aliases of the entity. */
  aliases?: readonly string[]
  /** As in {@link Write}. */
  released?: readonly string[]
  /** As in {@link Giving}. */
  kept?: ReadonlySet<string> | undefined
}

type NotRefused = { unchanged: EntityRow } | { change: Change }
export type Decision = { refusal: Refusal } | NotRefused

/** The internal identifier of the entity that a write leaves or changes. */
export const idOfDecision = (decision: NotRefused): string =>
  'change' in decision ? decision.change.id : decision.unchanged.id

/**
 * Applies the rules of every write to the current state and the request. Returns a refusal, the unchanged row, or a
 * change. The function is pure: it reads no clock, generates no identifier and uses no database. Single requests and
 * imports therefore follow the same rules. {@link erasedRefusal} checks afterwards whether a change gives an erased
 * value.
 */
export function decide(current: CurrentState | null, write: Write, plan: Plan, context: DecisionContext): Decision {
  const { deleted } = context
  const refusal = kindRefusal(write, context.definitions) ?? stateRefusal(current, write, deleted)
  if (refusal) return { refusal }
  if (write.operation === 'restore' && current) return { unchanged: current.row }
  if (write.operation === 'restore' && deleted) return decideRestore(write, deleted, context)
  if (current?.row.active && isRetry(write, context.definitions)) return decideRetry(current, write, plan, context)
  if (current?.row.active && (write.operation === 'create' || write.unrecognized))
    return { refusal: duplicateRefusal() }
  if (current && write.operation === 'delete') return { change: buildDeletion(current, context.definitions) }
  const decision = decideBody(current, write, plan, context)
  if (write.create_only && current?.row.active && 'change' in decision)
    return { refusal: conflictRefusal('The entity already exists, and the import has `create_only`.') }
  return decision
}

function decideRestore(write: Write, deleted: DeletedEntity, { definitions, holders }: DecisionContext): Decision {
  if (deleted.isNameTaken) return { refusal: duplicateRefusal() }
  const claims = claimsOf(definitions.unique.get(write.stack_id), deleted.attributes)
  const refusal = takenRefusal(claims, deleted.id, write, holders)
  return refusal ? { refusal } : { change: buildRestore(deleted) }
}

/** Event records are immutable, but they can be deleted, for erasure, and restored. */
function kindRefusal({ operation, stack_id }: Write, { stacks }: Definitions): Refusal | undefined {
  if (['create', 'import', 'delete', 'restore'].includes(operation)) return undefined
  if (!stacks.some(stack => stack.id === stack_id && stack.kind === 'event')) return undefined
  const headers = { Allow: 'GET, HEAD, DELETE' }
  return createRefusal(
    'invalid_parameter',
    'Records of an event stack cannot be updated. Delete the record and create another one.',
    { status: 405, headers },
  )
}

/**
 * A repeated event is a retry if replacing the stored event with it would change nothing. If the writer's role closes
 * fields, only the values that the event names are compared, so that the result does not reveal others.
 */
function decideRetry(current: CurrentState, write: Write, plan: Plan, context: DecisionContext): Decision {
  const isWhole = accessOf(write, write.stack_id) === undefined
  const replacement = decideBody(
    current,
    { ...write, operation: isWhole ? 'put' : 'patch' },
    { ...plan, clearsRest: isWhole, required: undefined },
    context,
  )
  return 'change' in replacement
    ? { refusal: conflictRefusal('This event is already stored with other content.') }
    : replacement
}

function stateRefusal(
  current: CurrentState | null,
  write: Write,
  deleted: DeletedEntity | undefined,
): Refusal | undefined {
  if (!current && !canCreate(write) && !deleted) {
    const kind = write.stack_id === peopleStackId ? 'person' : 'record'
    return createRefusal('not_found', `There is no such ${kind}.`)
  }
  if (!meetsIfMatch(write.if_match, current?.row.version))
    return buildOtherVersionRefusal(
      write.if_match,
      'The version of the entity does not match If-Match. Read the entity and retry with its ETag.',
    )
  return undefined
}

/** Refuses a write because the name is stored with other content. */
function conflictRefusal(message: string): Refusal {
  const details = [{ path: pointer('external_id'), message: 'is already stored with other content' }]
  return createRefusal('duplicate_entry', message, { details })
}

function duplicateRefusal(): Refusal {
  const details = [{ path: pointer('external_id'), message: 'is the external identifier of another entity' }]
  return createRefusal('duplicate_entry', 'The external identifier is taken.', { details })
}

function decideBody(current: CurrentState | null, write: Write, plan: Plan, context: DecisionContext): Decision {
  const { definitions, resolve, lastVersionOf, newId, limits } = context
  const row = current?.row
  const id = row?.id ?? newId(write)
  const newName = newNameOf(write)
  if (newName && (resolve(newName) ?? id) !== id) return { refusal: duplicateRefusal() }
  const alias = aliasOf(write)
  const aliasBearer = alias && resolve(alias)
  if (aliasBearer !== undefined && aliasBearer !== id) return { refusal: duplicateRefusal() }
  const aliases = alias && aliasBearer === undefined ? [alias.external_id] : noAliases

  const faults = [...plan.faults]
  const columns = profileChanges(row, write)
  const resolveTarget = plan.links.size === 0 ? resolve : withOwnNames(context, id, row, write)
  const { otherwiseNamed } = context
  const attributes = decideAttributes(current, plan, resolveTarget, definitions, limits.entityBytes, otherwiseNamed)
  faults.push(...attributeFaults(write, attributes, limits), ...invisibleFaults(columns, aliases, attributes))
  const warnings = phoneWarnings(row, columns, definitions.default_country)
  if (write.handling === 'strict') faults.push(...warnings)
  const { answers, consents } = decideAnswers(row, write, context, columns, faults)
  const isCompleted = isCompleting(write, row)
  const { released = noAliases } = write
  const hasValues = Object.keys(columns).length > 0 || attributes.changed || answers.length > 0
  const isEffective = hasValues || isCompleted || released.length > 0
  // An active entity keeps its stored values, and a write without an effect does not complete a placeholder.
  if (plan.required && (plan.clearsRest || !row || (!row.active && isEffective))) faults.push(...plan.required)
  if (faults.length > 0)
    return { refusal: createRefusal('invalid_parameter', 'The request breaks a rule.', { details: faults }) }
  const taken = plan.claims && takenRefusal(plan.claims, id, write, context.holders)
  if (taken) return { refusal: taken }

  if (row && !isEffective && aliases.length === 0) return { unchanged: row }
  if (!row?.active) columns.active = true
  const version = versionBefore(row, write, columns, aliases, lastVersionOf) + 1
  columns.version = version
  const { before, after } = describeChange(row, columns, attributes, consents)
  return {
    change: {
      ...attributes,
      operation: row ? 'update' : 'create',
      id,
      external_id: columns.external_id === undefined ? (row?.external_id ?? null) : columns.external_id,
      version,
      columns,
      answers,
      before,
      after,
      ...(aliases.length > 0 && { aliases }),
      ...(released.length > 0 && { released }),
      ...(warnings.length > 0 && { warnings }),
    },
  }
}

const noAliases: string[] = []
const noWarnings: Detail[] = []

/**
 * Warns of a changed phone number that is invalid with its prefix. It can serve neither to write to the person nor to
 * recognize them.
 */
function phoneWarnings(row: EntityRow | undefined, columns: Columns, country: string | null): Detail[] {
  if (phoneColumns.every(column => columns[column] === undefined)) return noWarnings
  const { mobile_prefix = row?.mobile_prefix, mobile_number = row?.mobile_number } = columns
  if (!mobile_number || readPhone(mobile_number, { prefix: mobile_prefix, country })) return noWarnings
  return [{ path: pointer('mobile_number'), message: notANumber }]
}

/** The faults of new names that a reader could mistake for others. Entities that already have such a name keep it. */
function invisibleFaults(
  { external_id }: Columns,
  aliases: readonly string[],
  { missing }: Pick<AttributeChange, 'missing'>,
): Detail[] {
  const faults: Detail[] = []
  const check = (path: string, name: string) => {
    const found = findInvisible(name)
    if (found === undefined) return
    faults.push({ path, message: `contains the invisible character ${found}. Send the identifier without it` })
  }
  if (external_id != null) check(externalIdPath, external_id)
  for (const alias of aliases) check(externalIdPath, alias)
  for (const { name, pointer: path } of missing) check(path, name.external_id)
  return faults
}

const externalIdPath = pointer('external_id')

/**
 * An entity that takes a name continues the versions of the last entity with that name, so an If-Match for the old one
 * fails.
 */
function versionBefore(
  row: EntityRow | undefined,
  { stack_id }: Write,
  columns: Columns,
  aliases: readonly string[],
  lastVersionOf: DecisionContext['lastVersionOf'],
): number {
  const taken = columns.external_id ? [columns.external_id, ...aliases] : aliases
  return Math.max(row?.version ?? 0, ...taken.map(external_id => lastVersionOf({ stack_id, external_id })))
}

/**
 * In a write that renames its entity, a link to the old or the new name refers to the entity itself and needs no
 * placeholder.
 */
function withOwnNames(
  { resolve }: DecisionContext,
  id: string,
  row: EntityRow | undefined,
  { stack_id, body, alias }: Write,
): Resolve {
  const names = [body.external_id, row?.external_id, alias]
  const own = new Set(names.map(name => nameKey({ stack_id, external_id: name ?? '' })))
  return reference => {
    if ('id' in reference) return resolve(reference)
    return own.has(nameKey(reference)) ? id : resolve(reference)
  }
}

const writableColumns = [...plainColumns, 'external_id'] as const

/** Returns the plain columns that change. PUT clears omitted columns, except the external identifier. */
export function profileChanges(row: EntityRow | undefined, { operation, address, body }: Write): Columns {
  const changes: Record<string, unknown> = {}
  for (const column of writableColumns) {
    const bodyValue = body[column]
    if (bodyValue === undefined && (operation !== 'put' || column === 'external_id')) continue
    // An entity that is addressed by an alias keeps its name.
    if (row && column === 'external_id' && address && 'external_id' in address && bodyValue === address.external_id)
      continue
    const value = bodyValue ?? null
    if (value !== (row?.[column] ?? null)) changes[column] = value
  }
  return changes
}

function attributeFaults(write: Write, attributes: AttributeChange, limits: DecisionLimits): Detail[] {
  const { missing, faults } = attributes
  if (faults.length > 0) return faults
  if (write.references === 'strict' && missing.length > 0)
    return missing.map(({ pointer: path }) => ({ path, message: 'names an entity that does not exist' }))
  if (missing.length > limits.placeholders && countNames(missing) > limits.placeholders)
    return [
      { path: pointer('attribute_values'), message: `would create more than ${limits.placeholders} placeholders` },
    ]
  return sizeFaults(attributes, limits)
}

function sizeFaults(change: AttributeChange, limits: DecisionLimits): Detail[] {
  const { changed, keyCount, isTooLarge } = change
  const faultOfAll = (message: string) => [{ path: pointer('attribute_values'), message }]
  if (changed && keyCount > limits.entityKeys && addsKey(change))
    return faultOfAll(`would leave the entity with more than ${limits.entityKeys} attribute values`)
  if (isTooLarge) return faultOfAll(`would leave the entity larger than ${limits.entityBytes} bytes`)
  return noFaults
}

const noFaults: Detail[] = []

/** Whether a key without a value gets one. */
const addsKey = ({ before, after }: AttributeChange) =>
  Object.keys(after).some(key => after[key] !== null && (before?.[key] ?? null) === null)

const countNames = (missing: AttributeChange['missing']) => new Set(missing.map(({ name }) => nameKey(name))).size

const loggedColumns = ['external_id', ...profileTexts, ...profileFlags] as const
/** The fields of a log entry, in the key order of jsonb: shorter keys first. Sorted keys save PostgreSQL 0.8 µs. */
const entryKeys = ([...loggedColumns, 'state', 'attribute_values', 'consents'] as const).toSorted(
  (one, other) => one.length - other.length || (one < other ? -1 : 1),
)

/** Values and links that an entity gets without a request, as in a merge. */
export type Fill = AttributeFill & {
  /** The columns that change, with the answers. */
  columns: Columns
  consents?: ConsentChange
  /** Answers for the consent history. */
  answers?: Answer[]
}

/**
 * Builds the update that gives an entity these values, and a version above `versionBefore`. Returns a refusal if they
 * exceed a limit, and undefined if no value differs and the version is already higher.
 */
export function buildFill(
  current: CurrentState,
  fill: Fill,
  definitions: Definitions,
  limits: DecisionLimits,
  versionBefore = 0,
): { refusal: Refusal } | { change: Change } | undefined {
  const { row } = current
  const attributes = fillAttributes(current, fill, definitions, limits.entityBytes)
  const hasValues = attributes.changed || Object.keys(fill.columns).length > 0
  if (!hasValues && row.version > versionBefore) return undefined
  const faults = sizeFaults(attributes, limits)
  if (faults.length > 0)
    return { refusal: createRefusal('invalid_parameter', 'The entity would be too large.', { details: faults }) }
  const version = Math.max(row.version, versionBefore) + 1
  return {
    change: {
      ...attributes,
      operation: 'update',
      id: row.id,
      external_id: fill.columns.external_id === undefined ? row.external_id : fill.columns.external_id,
      version,
      columns: { ...fill.columns, version },
      answers: fill.answers ?? [],
      ...describeChange(row, fill.columns, attributes, fill.consents),
    },
  }
}

/** Returns the changed fields before and after a write, in the format of a read, for the change log. */
function describeChange(
  row: EntityRow | undefined,
  columns: Columns,
  attributes: AttributeChange,
  consents: ConsentChange | undefined,
): { before: FieldValues | null; after: FieldValues } {
  const before: FieldValues = {}
  const after: FieldValues = {}
  const add = (key: string, old: unknown, value: unknown) => {
    if (value === undefined) return
    if (row) before[key] = old
    after[key] = value
  }
  for (const key of entryKeys)
    if (key === 'state') add(key, 'placeholder', columns.active ? 'active' : undefined)
    else if (key === 'attribute_values') add(key, attributes.before, attributes.changed ? attributes.after : undefined)
    else if (key === 'consents') add(key, consents?.before, consents?.after)
    else add(key, row?.[key] ?? null, columns[key])
  return { before: row ? before : null, after }
}

/** The log entry of a deletion holds the whole entity. The histories of consents and changes remain. */
export function buildDeletion(current: CurrentState, definitions: Definitions): Change {
  const { row } = current
  const clearAll: Plan = { plain: new Map(), links: new Map(), clearsRest: true, faults: [] }
  const attributes = decideAttributes(current, clearAll, () => undefined, definitions, Number.POSITIVE_INFINITY)
  const before: FieldValues = { state: row.active ? 'active' : 'placeholder' }
  for (const column of loggedColumns) if (row[column] !== null) before[column] = row[column]
  const values = Object.entries(attributes.before ?? {}).filter(([, value]) => value !== null)
  if (values.length > 0) before.attribute_values = Object.fromEntries(values)
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

/** The part of a change that changes no attribute and gives no answer. */
const nothing = { ...emptyChange(), answers: [] } satisfies Partial<Change>

/** Builds the change that creates a placeholder: an entity that others link to before any write creates it. */
export function buildPlaceholder(id: string, external_id: string, version: number): Change {
  const columns = { external_id, active: false, version }
  const after = { external_id, state: 'placeholder' }
  return { ...nothing, operation: 'create', id, external_id, version, columns, after }
}

/** Builds the change that erases an entity, whose row may be gone. Its log entry has no values. */
export function buildErasure(id: string, version: number, row: EntityRow | undefined): Change {
  const removed = Object.keys(row?.attributes ?? {})
  return { ...nothing, operation: 'erase', id, external_id: null, version, columns: {}, changed: true, removed }
}

/** Builds a log entry about an entity. Its version rises, and nothing else of it changes. */
export function buildNotice(
  { id, external_id, version }: Pick<EntityRow, 'id' | 'external_id' | 'version'>,
  notice: Pick<Change, 'operation' | 'before' | 'after'>,
): Change {
  const next = version + 1
  return { ...nothing, ...notice, id, external_id, version: next, columns: { version: next } }
}

/** Builds the change that brings back an entity as it was. Its log entry holds the whole entity. */
export function buildRestore({
  id,
  version,
  created_at,
  columns,
  answers,
  attributes,
  links,
  kept,
}: Omit<DeletedEntity, 'isNameTaken'>): Change {
  const { active, ...fields } = columns
  const values = { ...attributes }
  for (const { attribute, targets } of links)
    if (isShown(targets)) values[attribute.key] = relationshipValue(attribute, shownTargets(targets))
  const consents = currentAnswers(answers)
  const after = {
    state: active ? 'active' : 'placeholder',
    ...Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null)),
    ...(Object.keys(values).length > 0 && { attribute_values: values }),
    ...(consents.length > 0 && { consents }),
  }
  return {
    // A restore gives no answer, so the consent history gets none.
    ...nothing,
    operation: 'restore',
    id,
    external_id: columns.external_id ?? null,
    version: version + 1,
    columns: { ...columns, answers, version: version + 1 },
    changed: true,
    set: attributes,
    relinked: links.map(({ attribute, targets }) => ({ attribute, before: [], targets })),
    keyCount: Object.keys(values).length,
    after,
    created_at,
    kept,
  }
}
