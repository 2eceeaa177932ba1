import { type ChangePage, parseChanges, readNamed } from '../../changes/change-json.ts'
import { changeCloser } from '../../changes/closed-changes.ts'
import { defaultLimit, type HistoryQuery, historyPage, historyQuery } from '../../changes/schema.ts'
import { readHistorySql } from '../../changes/sql.ts'
import type { Call } from '../../route/call.ts'
import type { HandlerResult } from '../../route/result.ts'
import type { Route } from '../../route/route.ts'
import { requireScope } from '../../route/scopes.ts'
import { refuse } from '../../values/errors.ts'
import type { EntityKind } from '../entity-kind.ts'
import { idOfAddress } from '../find-entity.ts'
import { addressOf } from '../handlers.ts'

/** The histories of a kind of entity, by external and by internal identifier. */
export function historyEndpoints(kind: EntityKind): Route[] {
  const { path, params, noun, singular, plural, identifier, reads } = kind
  const shared = {
    method: 'GET',
    scope: reads,
    fields: 'shown',
    tag: plural,
    query: historyQuery,
    answer: historyPage,
    handle: (call: Call) => answerHistory(kind, call as Call<HistoryQuery>),
  } as const
  const scopes = 'The token also needs the scope `changes:read`.'
  return [
    {
      ...shared,
      path: `${path}/{external_id}/history`,
      params: { ...params, external_id: 'external_id' },
      operationId: `list${singular}History`,
      summary: `List the changes of a ${noun}`,
      description: `Newest first. ${scopes}`,
    },
    {
      ...shared,
      path: `${path}/internal/{${identifier.name}}/history`,
      params: { ...params, [identifier.name]: identifier.kind },
      operationId: `list${singular}HistoryById`,
      summary: `List the changes of a ${noun} by internal identifier`,
      description: `Newest first. A deleted ${noun} has a history too. ${scopes}`,
    },
  ]
}

/** A page ends after the change with which it reaches this size. */
const maxPageBytes = 1_048_576
const noVersion = 2_147_483_647

/** Answers with the changes of one person or record, newest first. */
async function answerHistory(kind: EntityKind, call: Call<HistoryQuery>): Promise<HandlerResult> {
  const { context, caller, body, signal } = call
  const { db, organization_id } = context
  requireScope(caller, 'changes:read')
  const stack_id = await kind.stackOf(call as Call)
  const id = (await idOfAddress(context, stack_id, addressOf(call, kind), signal)) ?? throwNotFound(kind)
  const { before_version = noVersion, limit = defaultLimit } = body
  const values = [organization_id, id, stack_id, before_version, limit + 1, maxPageBytes]
  const [row] = await db.query<ChangePage & { found: boolean }>(readHistorySql, values, signal)
  if (!row!.found) throwNotFound(kind)
  const changes = parseChanges(await readNamed(context, row!, { signal }))
  if (changes.length > 0) call.shown.add(stack_id, id)
  const close = changeCloser(caller)
  const items = changes.slice(0, limit).map(({ json }) => close?.(json) ?? json)
  return { status: 200, json: `{"items":[${items.join()}],"has_more":${items.length < row!.matched}}` }
}

const throwNotFound = ({ noun }: EntityKind): never => refuse('not_found', `There is no such ${noun}.`)
