import { isDeepStrictEqual } from 'node:util'
import type { Service } from '../../support/service.ts'
import type { Answer, Sender } from '../sender.ts'
import type { Command, ItemOperation, Whom } from './commands.ts'
import {
  type Address,
  type Entity,
  find,
  newOrganization,
  type Organization,
  type Outcome,
  related,
  type StackKey,
  shown,
  type Values,
  type Write,
  write,
} from './model.ts'

/** One of the two organizations of a sequence: as the service has it, and as the model does. */
export type Tenant = { id: number; token: string; model: Organization; service: Service; sender: Sender }

export const tenantOf = (service: Service, sender: Sender, made: { id: number; token: string }): Tenant => ({
  ...made,
  model: newOrganization(),
  service,
  sender,
})

const nobody = { people: '01936f3e-0a5c-7c3e-9d0a-5b6f3c1d2e4f', orders: 'f'.repeat(24), visits: 'f'.repeat(24) }
const collectionOf = (stack: StackKey) => (stack === 'people' ? '/v1/people' : `/v1/stacks/${stack}`)

function wrong(what: string, command: unknown, answer: Answer, expected: unknown): never {
  throw new Error(
    `${what}: ${JSON.stringify(command)}\n→ ${answer.status} ${answer.text.slice(0, 1_500)}\nthe model says ${JSON.stringify(expected)}`,
  )
}

/** Asks the service and the model the same, and throws where they differ. */
export async function replay(tenant: Tenant, command: Command): Promise<void> {
  if (command.kind === 'write') await replayWrite(tenant, command)
  else if (command.kind === 'batch') await replayBatch(tenant, command)
  else if (command.kind === 'read' || command.kind === 'related') await replayRead(tenant, command)
  else if (command.kind === 'list') await replayList(tenant, command)
  else if (command.kind === 'filter') await replayFilter(tenant, command)
  else await replayDefinition(tenant, command)
}

const ask = (
  { sender, token }: Tenant,
  method: string,
  path: string,
  body?: object,
  headers?: Record<string, string>,
) => sender.ask(token, { method, path, headers, body: body && JSON.stringify(body) })

function entityOf({ model }: Tenant, stack: StackKey, nth: number): Entity | undefined {
  const born = model.born.filter(entity => entity.stack === stack)
  return born[nth % born.length]
}

const addressOf = (tenant: Tenant, stack: StackKey, whom: Whom): Address =>
  'name' in whom ? { external_id: whom.name } : { entity: entityOf(tenant, stack, whom.nth) }

function pathOf(stack: StackKey, address: Address): string {
  if ('external_id' in address) return `${collectionOf(stack)}/${encodeURIComponent(address.external_id)}`
  return `${collectionOf(stack)}/internal/${address.entity?.id ?? nobody[stack]}`
}

/** A create and an upsert have their name in the body; by number, a create has none. */
function completed(tenant: Tenant, stack: StackKey, { op, whom, body, if_match }: ItemOperation): Write {
  if (op === 'create') {
    const named = 'name' in whom ? { external_id: whom.name, ...body } : body
    const external_id = named.external_id?.replace(/^\p{White_Space}+|\p{White_Space}+$/gu, '')
    return { op, stack, body: named, address: external_id === undefined ? undefined : { external_id }, if_match }
  }
  const name = 'name' in whom ? whom.name : 'a'
  if (op === 'upsert')
    return { op, stack, body: { ...body, external_id: name }, address: { external_id: name }, if_match }
  return { op, stack, body: op === 'delete' ? {} : body, address: addressOf(tenant, stack, whom), if_match }
}

async function replayWrite(tenant: Tenant, command: Command & { kind: 'write' }) {
  const { stack, strict } = command
  const asked = { ...completed(tenant, stack, command), strict }
  const { op, body, address, if_match } = asked
  const path =
    op === 'create' ? collectionOf(stack) : op === 'upsert' ? `${collectionOf(stack)}/upsert` : pathOf(stack, address!)
  const method = { create: 'POST', upsert: 'POST', put: 'PUT', patch: 'PATCH', delete: 'DELETE' }[op]
  const prefer = ['return=representation', ...(strict ? ['references=strict'] : [])].join(', ')
  const headers = { Prefer: prefer, ...(if_match && { 'If-Match': if_match }) }
  const answer = await ask(tenant, method, path, op === 'delete' ? undefined : body, headers)
  const outcome = write(tenant.model, asked)
  const byContract = stack === 'people' && op === 'patch' && 'external_id' in address!
  const expected = expectedOf(outcome, byContract)
  if (answer.status !== expected.status || answer.body.error !== expected.word)
    wrong('another answer', command, answer, expected)
  if ('refused' in outcome) return
  if (op !== 'delete') {
    outcome.entity.id ??= answer.body.data.id ?? answer.body.data.record_id
    compare(tenant, outcome.entity, answer.body.data, command, answer)
  }
  await learn(tenant)
}

/** A missing person is 500 and a taken name 400 at the PATCH of the contract. */
function expectedOf(outcome: Outcome, byContract: boolean): { status: number; word: string | undefined } {
  if ('done' in outcome) return { status: outcome.done === 'created' ? 201 : 200, word: undefined }
  const { refused, word } = outcome
  if (byContract && word === 'not_found') return { status: 500, word }
  return { status: byContract && word === 'duplicate_entry' ? 400 : refused, word }
}

async function replayBatch(tenant: Tenant, command: Command & { kind: 'batch' }) {
  const { stack, atomic } = command
  const field = stack === 'people' ? 'id' : 'record_id'
  const before = structuredClone(tenant.model)
  const writes = command.operations.map(operation => completed(tenant, stack, operation))
  const operations = writes.map(({ op, address, body, if_match }) => ({
    op,
    ...(op === 'create'
      ? {}
      : 'external_id' in address!
        ? { external_id: address.external_id }
        : { [field]: address!.entity?.id ?? nobody[stack] }),
    ...(op !== 'delete' && { body }),
    ...(if_match && { if_match }),
  }))
  const answer = await ask(tenant, 'POST', `${collectionOf(stack)}/batch`, { operations, atomic })
  const outcomes = writes.map(asked => write(tenant.model, asked))
  const failing = outcomes.find(outcome => 'refused' in outcome)
  if (atomic && failing) {
    tenant.model = before
    const { status, word } = expectedOf(failing, false)
    if (answer.status !== status || answer.body.error !== word) wrong('another refusal', command, answer, failing)
    return
  }
  if (answer.status !== 200)
    wrong(
      'refused',
      command,
      answer,
      outcomes.map(outcome => expectedOf(outcome, false)),
    )
  for (const [index, outcome] of outcomes.entries()) {
    const item = answer.body.data.items[index]
    const expected = expectedOf(outcome, false)
    if (item.status !== expected.status || item.error !== expected.word)
      wrong(`item ${index}`, command, answer, expected)
    if (!('done' in outcome)) continue
    outcome.entity.id ??= item.id
    if (outcome.entity.id !== item.id) wrong(`item ${index} is another entity`, command, answer, outcome.entity.id)
  }
  await learn(tenant)
}

/** Asks for the internal identifiers of placeholders, which no answer tells. */
async function learn(tenant: Tenant) {
  for (const entity of tenant.model.entities) {
    if (entity.id !== undefined) continue
    const answer = await ask(tenant, 'GET', pathOf(entity.stack, { external_id: entity.external_id! }))
    if (answer.status !== 200)
      wrong('a placeholder is missing', entity.external_id, answer, shown(entity, tenant.model))
    entity.id = answer.body.data.id ?? answer.body.data.record_id
  }
}

/** A read without what the model does not know: identifiers and times. */
function bare(read: Values): Values {
  const { id: _, record_id: __, created_at: ___, updated_at: ____, ...rest } = read
  if (!Array.isArray(rest.consents)) return rest
  const consents = rest.consents.map(({ answered_at, ...entry }) => {
    const isAnswer = entry.source === 'answer'
    return isAnswer === (answered_at !== null) ? entry : { ...entry, answered_at }
  })
  return {
    ...Object.fromEntries(Object.entries({ ...rest, consents }).filter(([key]) => !unused.includes(key))),
  }
}

const unused = ['last_name', 'mobile_prefix', 'mobile_number', 'date_of_birth', 'language']

function compare({ model }: Tenant, entity: Entity, read: Values, command: unknown, answer: Answer) {
  const expected = shown(entity, model)
  if (!isDeepStrictEqual(bare(read), expected)) wrong('reads otherwise', command, answer, expected)
  if ((read.id ?? read.record_id) !== entity.id) wrong('another identifier', command, answer, entity.id)
}

async function replayRead(tenant: Tenant, command: Command & { kind: 'read' | 'related' }) {
  const { stack, whom } = command
  const address = addressOf(tenant, stack, whom)
  const path = pathOf(stack, address)
  const found =
    'external_id' in address
      ? find(tenant.model, stack, address.external_id)
      : tenant.model.entities.find(entity => entity === address.entity)
  if (command.kind === 'read') {
    const answer = await ask(tenant, 'GET', path)
    if (answer.status !== (found ? 200 : 404)) wrong('another answer', command, answer, found)
    if (found) compare(tenant, found, answer.body.data, command, answer)
    return
  }
  const { target, direction } = command
  const answer = await ask(tenant, 'POST', `${path}/related`, { target, direction })
  if (answer.status !== (found ? 200 : 404)) wrong('another answer', command, answer, found)
  if (found)
    comparePage(
      tenant,
      [...related(tenant.model, found, target, direction)],
      answer.body.data.items,
      false,
      command,
      answer,
    )
}

const idOf = (item: Values) => String(item.id ?? item.record_id)

function comparePage(
  tenant: Tenant,
  expected: Entity[],
  items: Values[],
  ascending: boolean,
  command: unknown,
  answer: Answer,
) {
  const ids = expected.map(entity => entity.id!).sort()
  if (!ascending) ids.reverse()
  if (!isDeepStrictEqual(items.map(idOf), ids))
    wrong(
      'another page',
      command,
      answer,
      expected.map(entity => entity.external_id),
    )
  for (const item of items) compare(tenant, expected.find(entity => entity.id === idOf(item))!, item, command, answer)
}

const standing = ({ model }: Tenant, stack: StackKey) => model.entities.filter(entity => entity.stack === stack)

/** Page by page to the end: all there are, each once, and no page short before the last. */
async function replayList(tenant: Tenant, command: Command & { kind: 'list' }) {
  const { stack, size, ascending } = command
  const items: Values[] = []
  for (;;) {
    const after_id = items.length > 0 ? { after_id: idOf(items.at(-1)!) } : {}
    const body = { cursor_configuration: { size, ...after_id }, ...(ascending && { sorting_type: 'asc' }) }
    const answer = await ask(tenant, 'POST', `${collectionOf(stack)}/list`, body)
    const page = answer.body.data
    if (page.has_more && page.items.length < size) wrong('a page is short before the end', command, answer, size)
    items.push(...page.items)
    if (page.has_more) continue
    comparePage(tenant, standing(tenant, stack), items, ascending, command, answer)
    return
  }
}

async function replayFilter(tenant: Tenant, command: Command & { kind: 'filter' }) {
  const answer = await ask(tenant, 'POST', '/v1/people/filter', { filter: command.filter })
  if (answer.status !== 200) wrong('refused', command, answer, 200)
  const expected = standing(tenant, 'people').filter(entity => matches(entity, command.filter))
  comparePage(tenant, expected, answer.body.data.items, false, command, answer)
}

/** The few shapes of filter that `commands.ts` makes. */
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
    const state = command.scored ? 'active' : 'archived'
    const answer = await ask(tenant, 'PATCH', '/v1/schema/attributes/1', { state })
    if (answer.status !== 200) wrong('refused', command, answer, 200)
    if (model.scored !== command.scored) model.changes += 1
    model.scored = command.scored
    return
  }
  const type = model.types.find(({ id }) => id === command.id)!
  const path = `/v1/schema/consent-types/${command.id}`
  if (command.kind === 'consent type') {
    const answer = await ask(tenant, 'PATCH', path, { state: command.active ? 'active' : 'archived' })
    if (answer.status !== 200) wrong('refused', command, answer, 200)
    if (type.active !== command.active) model.changes += 1
    type.active = command.active
    // Archiving takes the marks away.
    if (!command.active) for (const channel of type.channels.keys()) type.channels.set(channel, false)
    return
  }
  const channels = [...type.channels.keys()].map(channel => ({ channel, is_default: true }))
  const answer = await ask(tenant, 'PATCH', path, { channels })
  if (answer.status !== (type.active ? 200 : 400)) wrong('another answer', command, answer, type.active)
  if (!type.active) return
  for (const other of model.types.filter(({ active }) => active)) {
    const before = [...other.channels.values()]
    for (const channel of other.channels.keys())
      if (type.channels.has(channel)) other.channels.set(channel, other === type)
    if (!isDeepStrictEqual(before, [...other.channels.values()])) model.changes += 1
  }
}

/** Everything that stands is what the model has, and the histories are as long as they should be. */
export async function settle(tenant: Tenant): Promise<void> {
  const organization = 0
  for (const stack of ['people', 'orders', 'visits'] as const)
    await replayList(tenant, { organization, kind: 'list', stack, size: 500, ascending: true })
  const [counted] = await tenant.service.sql<{ changes: number; numbered: number; history: number }>(
    `select (select sequence from change_heads where organization_id = $1) as changes,
       (select count(*) from changes where organization_id = $1) as numbered,
       (select count(*) from consent_history where organization_id = $1) as history`,
    [tenant.id],
  )
  const { changes, history } = tenant.model
  if (!isDeepStrictEqual(counted, { changes, numbered: changes, history }))
    throw new Error(`the histories have ${JSON.stringify(counted)}, the model ${JSON.stringify({ changes, history })}`)
}
