import { isDeepStrictEqual } from 'node:util'
import type { Service } from '../../support/service.ts'
import type { RawResponse, Sender } from '../sender.ts'
import type { Command, ItemOperation, Selector } from './commands.ts'
import {
  type Address,
  applyWrite,
  type Entity,
  expectedRead,
  find,
  newOrganization,
  type Organization,
  type Outcome,
  related,
  type StackKey,
  type Values,
  type Write,
} from './model.ts'

/** One of the two organizations of a sequence, in the service and in the model. */
export type Tenant = { id: number; token: string; model: Organization; service: Service; sender: Sender }

export const createTenant = (
  service: Service,
  sender: Sender,
  organization: { id: number; token: string },
): Tenant => ({
  ...organization,
  model: newOrganization(),
  service,
  sender,
})

const unknownIds = { people: '01936f3e-0a5c-7c3e-9d0a-5b6f3c1d2e4f', orders: 'f'.repeat(24), visits: 'f'.repeat(24) }
const collectionOf = (stack: StackKey) => (stack === 'people' ? '/v1/people' : `/v1/stacks/${stack}`)

function throwMismatch(problem: string, command: unknown, response: RawResponse, expected: unknown): never {
  throw new Error(
    `${problem}: ${JSON.stringify(command)}\n→ ${response.status} ${response.text.slice(0, 1_500)}\nthe model says ${JSON.stringify(expected)}`,
  )
}

/** Runs a command on the service and on the model. Throws if their results differ. */
export async function replay(tenant: Tenant, command: Command): Promise<void> {
  if (command.kind === 'write') await replayWrite(tenant, command)
  else if (command.kind === 'batch') await replayBatch(tenant, command)
  else if (command.kind === 'read' || command.kind === 'related') await replayRead(tenant, command)
  else if (command.kind === 'list') await replayList(tenant, command)
  else if (command.kind === 'filter') await replayFilter(tenant, command)
  else await replayDefinition(tenant, command)
}

const send = (
  { sender, token }: Tenant,
  method: string,
  path: string,
  body?: object,
  headers?: Record<string, string>,
) => sender.send(token, { method, path, headers, body: body && JSON.stringify(body) })

function entityOf({ model }: Tenant, stack: StackKey, nth: number): Entity | undefined {
  const created = model.created.filter(entity => entity.stack === stack)
  return created[nth % created.length]
}

const addressOf = (tenant: Tenant, stack: StackKey, selector: Selector): Address =>
  'name' in selector ? { external_id: selector.name } : { entity: entityOf(tenant, stack, selector.nth) }

function pathOf(stack: StackKey, address: Address): string {
  if ('external_id' in address) return `${collectionOf(stack)}/${encodeURIComponent(address.external_id)}`
  return `${collectionOf(stack)}/internal/${address.entity?.id ?? unknownIds[stack]}`
}

/** Completes an operation to a write. A create or an upsert has its name in the body. A create selected by index has no name. */
function toWrite(tenant: Tenant, stack: StackKey, { op, selector, body, if_match }: ItemOperation): Write {
  if (op === 'create') {
    const named = 'name' in selector ? { external_id: selector.name, ...body } : body
    const external_id = named.external_id?.replace(/^\p{White_Space}+|\p{White_Space}+$/gu, '')
    return { op, stack, body: named, address: external_id === undefined ? undefined : { external_id }, if_match }
  }
  const name = 'name' in selector ? selector.name : 'a'
  if (op === 'upsert')
    return { op, stack, body: { ...body, external_id: name }, address: { external_id: name }, if_match }
  return { op, stack, body: op === 'delete' ? {} : body, address: addressOf(tenant, stack, selector), if_match }
}

async function replayWrite(tenant: Tenant, command: Command & { kind: 'write' }) {
  const { stack, strict } = command
  const write = { ...toWrite(tenant, stack, command), strict }
  const { op, body, address, if_match } = write
  const path =
    op === 'create' ? collectionOf(stack) : op === 'upsert' ? `${collectionOf(stack)}/upsert` : pathOf(stack, address!)
  const method = { create: 'POST', upsert: 'POST', put: 'PUT', patch: 'PATCH', delete: 'DELETE' }[op]
  const prefer = ['return=representation', ...(strict ? ['references=strict'] : [])].join(', ')
  const headers = { Prefer: prefer, ...(if_match && { 'If-Match': if_match }) }
  const response = await send(tenant, method, path, op === 'delete' ? undefined : body, headers)
  const outcome = applyWrite(tenant.model, write)
  const isContractPatch = stack === 'people' && op === 'patch' && 'external_id' in address!
  const expected = expectedOf(outcome, isContractPatch)
  if (response.status !== expected.status || response.body.error !== expected.code)
    throwMismatch('unexpected response', command, response, expected)
  if ('refused' in outcome) return
  if (op !== 'delete') {
    outcome.entity.id ??= response.body.data.id ?? response.body.data.record_id
    compare(tenant, outcome.entity, response.body.data, command, response)
  }
  await readPlaceholderIds(tenant)
}

/** Returns the expected status and error code. The contract's PATCH returns 500 for a missing person and 400 for a taken name. */
function expectedOf(outcome: Outcome, isContractPatch: boolean): { status: number; code: string | undefined } {
  if ('done' in outcome) return { status: outcome.done === 'created' ? 201 : 200, code: undefined }
  const { refused, code } = outcome
  if (isContractPatch && code === 'not_found') return { status: 500, code }
  return { status: isContractPatch && code === 'duplicate_entry' ? 400 : refused, code }
}

async function replayBatch(tenant: Tenant, command: Command & { kind: 'batch' }) {
  const { stack, atomic } = command
  const field = stack === 'people' ? 'id' : 'record_id'
  const modelBefore = structuredClone(tenant.model)
  const writes = command.operations.map(operation => toWrite(tenant, stack, operation))
  const operations = writes.map(({ op, address, body, if_match }) => ({
    op,
    ...(op === 'create'
      ? {}
      : 'external_id' in address!
        ? { external_id: address.external_id }
        : { [field]: address!.entity?.id ?? unknownIds[stack] }),
    ...(op !== 'delete' && { body }),
    ...(if_match && { if_match }),
  }))
  const response = await send(tenant, 'POST', `${collectionOf(stack)}/batch`, { operations, atomic })
  const outcomes = writes.map(write => applyWrite(tenant.model, write))
  const firstRefusal = outcomes.find(outcome => 'refused' in outcome)
  if (atomic && firstRefusal) {
    tenant.model = modelBefore
    const { status, code } = expectedOf(firstRefusal, false)
    if (response.status !== status || response.body.error !== code)
      throwMismatch('unexpected refusal', command, response, firstRefusal)
    return
  }
  if (response.status !== 200)
    throwMismatch(
      'refused',
      command,
      response,
      outcomes.map(outcome => expectedOf(outcome, false)),
    )
  for (const [index, outcome] of outcomes.entries()) {
    const item = response.body.data.items[index]
    const expected = expectedOf(outcome, false)
    if (item.status !== expected.status || item.error !== expected.code)
      throwMismatch(`item ${index}`, command, response, expected)
    if (!('done' in outcome)) continue
    outcome.entity.id ??= item.id
    if (outcome.entity.id !== item.id)
      throwMismatch(`item ${index} has an unexpected entity`, command, response, outcome.entity.id)
  }
  await readPlaceholderIds(tenant)
}

/** Reads the internal identifiers of new placeholders, which no write response contains. */
async function readPlaceholderIds(tenant: Tenant) {
  for (const entity of tenant.model.entities) {
    if (entity.id !== undefined) continue
    const response = await send(tenant, 'GET', pathOf(entity.stack, { external_id: entity.external_id! }))
    if (response.status !== 200)
      throwMismatch('a placeholder is missing', entity.external_id, response, expectedRead(entity, tenant.model))
    entity.id = response.body.data.id ?? response.body.data.record_id
  }
}

/** Removes what the model does not have: identifiers, times and unused fields. Keeps `answered_at` if it contradicts `source`. */
function withoutUnmodeled(read: Values): Values {
  const { id: _, record_id: __, created_at: ___, updated_at: ____, ...rest } = read
  if (!Array.isArray(rest.consents)) return rest
  const consents = rest.consents.map(({ answered_at, ...entry }) => {
    const isAnswer = entry.source === 'answer'
    return isAnswer === (answered_at !== null) ? entry : { ...entry, answered_at }
  })
  return { ...rest, consents }
}

function compare({ model }: Tenant, entity: Entity, read: Values, command: unknown, response: RawResponse) {
  const expected = expectedRead(entity, model)
  if (!isDeepStrictEqual(withoutUnmodeled(read), expected))
    throwMismatch('unexpected read', command, response, expected)
  if ((read.id ?? read.record_id) !== entity.id) throwMismatch('unexpected identifier', command, response, entity.id)
}

async function replayRead(tenant: Tenant, command: Command & { kind: 'read' | 'related' }) {
  const { stack, selector } = command
  const address = addressOf(tenant, stack, selector)
  const path = pathOf(stack, address)
  const found =
    'external_id' in address
      ? find(tenant.model, stack, address.external_id)
      : tenant.model.entities.find(entity => entity === address.entity)
  if (command.kind === 'read') {
    const response = await send(tenant, 'GET', path)
    if (response.status !== (found ? 200 : 404)) throwMismatch('another answer', command, response, found)
    if (found) compare(tenant, found, response.body.data, command, response)
    return
  }
  const { target, direction } = command
  const response = await send(tenant, 'POST', `${path}/related`, { target, direction })
  if (response.status !== (found ? 200 : 404)) throwMismatch('another answer', command, response, found)
  if (found)
    comparePage(
      tenant,
      [...related(tenant.model, found, target, direction)],
      response.body.data.items,
      false,
      command,
      response,
    )
}

const idOf = (item: Values) => String(item.id ?? item.record_id)

function comparePage(
  tenant: Tenant,
  expected: Entity[],
  items: Values[],
  ascending: boolean,
  command: unknown,
  response: RawResponse,
) {
  const ids = expected.map(entity => entity.id!).sort()
  if (!ascending) ids.reverse()
  if (!isDeepStrictEqual(items.map(idOf), ids))
    throwMismatch(
      'unexpected page',
      command,
      response,
      expected.map(entity => entity.external_id),
    )
  for (const item of items) compare(tenant, expected.find(entity => entity.id === idOf(item))!, item, command, response)
}

const entitiesOf = ({ model }: Tenant, stack: StackKey) => model.entities.filter(entity => entity.stack === stack)

/** Reads all pages. Expects every entity once, and no short page before the last. */
async function replayList(tenant: Tenant, command: Command & { kind: 'list' }) {
  const { stack, size, ascending } = command
  const items: Values[] = []
  for (;;) {
    const after_id = items.length > 0 ? { after_id: idOf(items.at(-1)!) } : {}
    const body = { cursor_configuration: { size, ...after_id }, ...(ascending && { sorting_type: 'asc' }) }
    const response = await send(tenant, 'POST', `${collectionOf(stack)}/list`, body)
    const page = response.body.data
    if (page.has_more && page.items.length < size)
      throwMismatch('a page is short before the end', command, response, size)
    items.push(...page.items)
    if (page.has_more) continue
    comparePage(tenant, entitiesOf(tenant, stack), items, ascending, command, response)
    return
  }
}

async function replayFilter(tenant: Tenant, command: Command & { kind: 'filter' }) {
  const response = await send(tenant, 'POST', '/v1/people/filter', { filter: command.filter })
  if (response.status !== 200) throwMismatch('refused', command, response, 200)
  const expected = entitiesOf(tenant, 'people').filter(entity => matches(entity, command.filter))
  comparePage(tenant, expected, response.body.data.items, false, command, response)
}

/** Evaluates the shapes of filter that commands.ts generates. */
function matches(entity: Entity, filter: Values): boolean {
  const [[field, operand]] = Object.entries(filter) as [[string, unknown]]
  if (field === 'external_id') return entity.external_id === operand
  if (field === 'state') return entity.active === (operand === 'active')
  if (field === 'sms_consent') return entity.flags.sms === operand
  if (field === 'first_name')
    return typeof operand === 'string' ? entity.profile.first_name === operand : entity.profile.first_name === null
  if (field.endsWith('friends'))
    return (entity.links.get('friends') ?? []).some(friend => friend.external_id === operand)
  if (field.endsWith('referrer')) return entity.links.get('referrer')?.[0]?.profile.first_name === 'Ada'
  const score = entity.values.get('score')
  return typeof score === 'number' && score >= (operand as { $gte: number }).$gte
}

async function replayDefinition(tenant: Tenant, command: Command & { kind: 'declare' | 'consent type' | 'default' }) {
  const { model } = tenant
  if (command.kind === 'declare') {
    const state = command.isScoreDeclared ? 'active' : 'archived'
    const response = await send(tenant, 'PATCH', '/v1/schema/attributes/1', { state })
    if (response.status !== 200) throwMismatch('refused', command, response, 200)
    if (model.isScoreDeclared !== command.isScoreDeclared) model.changes += 1
    model.isScoreDeclared = command.isScoreDeclared
    return
  }
  const type = model.types.find(({ id }) => id === command.id)!
  const path = `/v1/schema/consent-types/${command.id}`
  if (command.kind === 'consent type') {
    const response = await send(tenant, 'PATCH', path, { state: command.active ? 'active' : 'archived' })
    if (response.status !== 200) throwMismatch('refused', command, response, 200)
    if (type.active !== command.active) model.changes += 1
    type.active = command.active
    // An archived consent type is the default of no channel.
    if (!command.active) for (const channel of type.channels.keys()) type.channels.set(channel, false)
    return
  }
  const channels = [...type.channels.keys()].map(channel => ({ channel, is_default: true }))
  const response = await send(tenant, 'PATCH', path, { channels })
  if (response.status !== (type.active ? 200 : 400)) throwMismatch('another answer', command, response, type.active)
  if (!type.active) return
  for (const other of model.types.filter(({ active }) => active)) {
    const modelBefore = [...other.channels.values()]
    for (const channel of other.channels.keys())
      if (type.channels.has(channel)) other.channels.set(channel, other === type)
    if (!isDeepStrictEqual(modelBefore, [...other.channels.values()])) model.changes += 1
  }
}

/** Compares all entities with the model, and the lengths of the change log and the consent history. */
export async function compareFinalState(tenant: Tenant): Promise<void> {
  const organization = 0
  for (const stack of ['people', 'orders', 'visits'] as const)
    await replayList(tenant, { organization, kind: 'list', stack, size: 500, ascending: true })
  const [stored] = await tenant.service.sql<{ changes: number; numbered: number; history: number }>(
    `select (select sequence from change_heads where organization_id = $1) as changes,
       (select count(*) from changes where organization_id = $1) as numbered,
       (select count(*) from consent_history where organization_id = $1) as history`,
    [tenant.id],
  )
  const { changes, history } = tenant.model
  if (!isDeepStrictEqual(stored, { changes, numbered: changes, history }))
    throw new Error(
      `the stored histories have ${JSON.stringify(stored)}, the model ${JSON.stringify({ changes, history })}`,
    )
}
