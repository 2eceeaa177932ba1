import type { Context } from '../db/context.ts'
import { peopleStackId } from '../organizations/definitions.ts'
import { type Operation, type Subject, subjects } from '../organizations/logged-changes.ts'
import type { Signal } from '../process/signal.ts'
import type { Call } from '../route/call.ts'
import { accessOf, type FieldRights, isOpen, throwForbidden } from '../route/field-rights.ts'
import { requireScope, type Scope } from '../route/scopes.ts'
import { pointer, refuse } from '../values/errors.ts'
import { isObjectId, isUuid, uuidOfRecord } from '../values/formats.ts'
import type { LoggedChange } from './change-json.ts'
import type { LinksForm } from './link-names.ts'
import type { ChangesQuery } from './schema.ts'
import { findEntitiesSql, findStacksSql } from './sql.ts'

export const readScopes = {
  person: 'people:read',
  record: 'records:read',
  stack: 'schema:read',
  attribute: 'schema:read',
  consent_type: 'schema:read',
  webhook: 'webhooks:read',
  settings: 'schema:read',
  segment: 'schema:read',
  retention_rule: 'schema:read',
  hold: 'people:read',
  role: 'access:read',
} as const satisfies Record<Subject, Scope>

/** The changes that a request asks for and may see. */
export type Selection = {
  subjects: readonly Subject[]
  /** The stacks of the records; null for all. */
  stack_ids: readonly number[] | null
  operations: readonly Operation[] | null
  /** Only changes by which a person entered or left one of these; null for all changes. */
  segments: SelectedSegments | null
  /** Only changes of these people and records; null for all changes. */
  entity_ids: readonly string[] | null
  /** The form in which the changes show the targets of relationships. */
  links?: LinksForm
  /** The scopes that the token needs for as long as the request runs. */
  scopes: readonly Scope[]
  /** The fields that the role of the token opens, for as long as the request runs. */
  rights?: FieldRights | undefined
  /** Equal for equal selections. */
  key: string
}

/**
 * The segments of a selection. The log covers them after the change `since`, until their members are computed again.
 */
export type SelectedSegments = { ids: readonly number[]; since: number }

/** Finds the segments with these keys, and the scopes that read their filters. Throws 400 for an unknown key. */
export type FindSegments = (
  call: Pick<Call, 'context' | 'caller' | 'signal'>,
  keys: readonly string[],
) => Promise<SelectedSegments & { scopes: readonly Scope[] }>

type Caller = Call['caller']

/**
 * The selection of a query. Without `subject` it has the subjects whose read scope the token has. Throws a Fault: 403
 * for a subject or a segment without its scope, 400 for an unknown stack or segment.
 */
export async function selectionOf(
  { context, caller, signal, body }: Pick<Call<ChangesQuery>, 'context' | 'caller' | 'signal' | 'body'>,
  findSegments: FindSegments,
): Promise<Selection> {
  const { subject, stack, operation, segment, entity, links } = body
  if (segment && entity) throwInvalid('/entity', 'does not apply together with segment')
  const named = subject ?? (stack ? (['record'] as const) : undefined)
  for (const name of named ?? []) requireScope(caller, readScopes[name])
  const closed = closedSubjects(caller)
  for (const [index, name] of (named ?? []).entries()) if (closed.includes(name)) throwClosed(pointer('subject', index))
  const visible = subjects.filter(name =>
    named ? named.includes(name) : caller.scopes.has(readScopes[name]) && !closed.includes(name),
  )
  const found = segment && (await findSegments({ context, caller, signal }, segment))
  requireSegmentScopes(caller, found?.scopes ?? [])
  // When the clock moves people, the log has a change of the segment. The feed shows it even without schema:read,
  // because it is only about people.
  const shown = found && !named ? [...new Set<Subject>([...visible, 'segment'])] : visible
  const selection = {
    // Only records have a stack.
    subjects: stack ? shown.filter(name => name === 'record') : shown,
    stack_ids: stack ? await findStackIds(context, stack, signal) : openStacks(caller),
    operations: operation ?? null,
    segments: found ? { ids: found.ids, since: found.since } : null,
    entity_ids: entity === undefined ? null : await findEntityIds(context, entity, signal),
    links,
  }
  requireStacksOpen(caller, stack ?? [])
  const scopes = [
    'changes:read' as const,
    ...new Set([...visible.map(name => readScopes[name]), ...(found?.scopes ?? [])]),
  ]
  const rights = caller.rights
  return { ...selection, scopes, rights, key: JSON.stringify(selection) + (rights?.key ?? '') }
}

/** Throws a Fault of 403 if the caller lacks one of the scopes for the fields that the filter of a segment tests. */
export function requireSegmentScopes(caller: Caller, scopes: Iterable<Scope>): void {
  for (const scope of scopes) requireScope(caller, scope, ', which reads what the filter of the segment tests')
}

/** The subjects that the role of the caller closes. The reason of a hold may mention any field. */
function closedSubjects(caller: Caller): Subject[] {
  if (!accessOf(caller, peopleStackId)) return []
  return isOpen(caller, peopleStackId) ? ['hold'] : ['hold', 'person']
}

/** The stacks whose records the caller may see. Null: all. */
const openStacks = ({ rights }: Caller): number[] | null =>
  rights ? [...rights.byStack.keys()].filter(id => id !== peopleStackId).sort((a, b) => a - b) : null

/** Throws a Fault of 403 for a stack that the role of the caller closes. The stacks exist. */
function requireStacksOpen({ rights }: Caller, keys: readonly string[]): void {
  for (const [index, key] of keys.entries())
    if (rights?.byOwner.has(key) === false) throwClosed(pointer('stack', index))
}

const throwClosed = (path: string): never => throwForbidden([{ path, message: 'is closed to the role of the caller' }])

async function findStackIds({ db, organization_id }: Context, keys: string[], signal: Signal): Promise<number[]> {
  const found = await db.query<{ id: number; key: string }>(findStacksSql, [organization_id, keys], signal)
  const known = new Set(found.map(({ key }) => key))
  const unknown = keys.findIndex(key => !known.has(key))
  if (unknown !== -1) throwInvalid(pointer('stack', unknown), 'is not the key of a stack')
  return found.map(({ id }) => id).sort((a, b) => a - b)
}

const throwInvalid = (path: string, message: string): never =>
  refuse('invalid_parameter', 'The query has invalid values. See details.', { details: [{ path, message }] })

/** The people and records that an identifier names or has named, which may be none. */
async function findEntityIds(
  { db, organization_id }: Context,
  identifier: string,
  signal: Signal,
): Promise<readonly string[]> {
  const record = isObjectId(identifier) ? [uuidOfRecord(identifier.toLowerCase())] : []
  const ids = isUuid(identifier) ? [identifier] : record
  const [found] = await db.query<{ ids: string[] }>(findEntitiesSql, [organization_id, identifier, ids], signal)
  return found!.ids.sort()
}

/**
 * The warning about subjects whose scope the token lacks. There is none if the request names what it wants and sees
 * some of it. Throws `forbidden` instead if the request asks for strict handling.
 */
export function warningsOf(
  { caller, preferences, body }: Pick<Call<ChangesQuery>, 'caller' | 'preferences' | 'body'>,
  { subjects: shown }: Selection,
) {
  const isNamed = body.subject || body.stack || body.segment
  if (isNamed && shown.length > 0) return []
  const unread = subjects.filter(name => !caller.scopes.has(readScopes[name]))
  if (unread.length === 0) return []
  const scopes = [...new Set(unread.map(name => readScopes[name]))]
  if (preferences.handling === 'strict') requireScope(caller, scopes[0]!, ', or name the subjects you want')
  const message =
    shown.length === 0
      ? `The token has none of the scopes ${scopes.join(', ')}, so it sees no change.`
      : `The token lacks ${scopes.join(', ')}, so it sees no change of ${unread.join(', ')}. Name the subjects you want in \`subject\`.`
  return [{ path: '/subject', message }]
}

/** All changes of an organization. */
export const everything: Selection = {
  subjects,
  stack_ids: null,
  operations: null,
  segments: null,
  entity_ids: null,
  scopes: [],
  key: '',
}

/**
 * All changes of the segments of a selection, or if it has none all changes of the organization. The form of links is
 * that of the selection.
 */
export const widestOf = ({ segments, links }: Selection): Selection =>
  segments || links ? { ...everything, segments, links, key: logKeyOf({ segments, links }) } : everything

/** Requests with an equal key wait for the same log. */
export const logKeyOf = ({ segments, links }: Pick<Selection, 'segments' | 'links'>): string =>
  `${links ?? ''}${segments ? JSON.stringify(segments) : ''}`

/** The values of {@link readChangesSql} from $6 on. The statements of the other feeds have one more, $11. */
export function filterValuesOf({ subjects, stack_ids, operations, segments, entity_ids }: Selection): unknown[] {
  const others = subjects.filter(name => name !== 'person' && name !== 'record')
  const values = [subjects.includes('person'), subjects.includes('record'), stack_ids, others, operations]
  const named = segments?.ids ?? entity_ids
  return named ? [...values, named] : values
}

/** Whether a change is in a selection, as {@link readChangesSql} decides it. */
export const isSelected = (
  { subjects, stack_ids, operations, entity_ids }: Selection,
  change: Pick<LoggedChange, 'subject' | 'stack_id' | 'operation' | 'entity_id'>,
): boolean =>
  subjects.includes(change.subject) &&
  (stack_ids === null || change.subject !== 'record' || stack_ids.includes(change.stack_id!)) &&
  (operations === null || operations.includes(change.operation)) &&
  (entity_ids === null || (change.entity_id !== undefined && entity_ids.includes(change.entity_id)))

/** Whether a token still has the scopes of a selection, and its role the same fields. */
export const maySee = (caller: Caller, { scopes, rights }: Selection): boolean =>
  scopes.every(scope => caller.scopes.has(scope)) && caller.rights?.key === rights?.key
