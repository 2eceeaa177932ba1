import type { TSchema } from 'typebox'
import type { Config } from '../config.ts'
import { readByExternalId, readById } from '../entities/read.ts'
import { entityTag } from '../entities/represent.ts'
import type { Read } from '../entities/row.ts'
import type { Address, EntityBody } from '../entities/write.ts'
import { addressOfCreate, writeOne } from '../entities/write-one.ts'
import { fail } from '../errors.ts'
import { type Answer, type Call, type Route, route } from '../http/route.ts'
import { definitionsAt, people_stack_id } from '../organizations/definitions.ts'
import { toPerson } from './person.ts'
import { personBody } from './schema.ts'

/** A person has two addresses. What is done at either is the same, but for one quirk of the contract. */
const addresses = [
  {
    at: { path: '/v1/people/{external_id}', params: { external_id: 'external_id' } },
    suffix: '',
    by: '',
    // The contract's PATCH documents 200, 400 and 500 alone: a missing person is 500 there, a taken name 400.
    patch_statuses: { not_found: 500, duplicate_entry: 400 },
  },
  {
    at: { path: '/v1/people/internal/{uuid}', params: { uuid: 'uuid' } },
    suffix: 'ById',
    by: ' by internal identifier',
    patch_statuses: {},
  },
] as const

export function peopleRoutes({ limits }: Config): Route[] {
  const body = personBody(limits)
  const create = route<EntityBody>({
    method: 'POST',
    path: '/v1/people',
    scope: 'people:write',
    operation_id: 'createPerson',
    summary: 'Create a person',
    body,
    handle: createPerson,
  })
  return [create, ...addresses.flatMap(address => routesAt(address, body))]
}

function routesAt({ at, suffix, by, patch_statuses }: (typeof addresses)[number], body: TSchema): Route[] {
  const named = (name: string, summary: string) => ({ operation_id: name + suffix, summary: summary + by })
  const reads = { ...at, scope: 'people:read' } as const
  const writes = { ...at, scope: 'people:write' } as const
  return [
    route({ method: 'GET', ...reads, ...named('getPerson', 'Read a person'), handle: getPerson }),
    route<EntityBody>({
      method: 'PUT',
      ...writes,
      ...named('replacePerson', 'Replace a person'),
      body,
      handle: call => updatePerson(call, 'put'),
    }),
    route<EntityBody>({
      method: 'PATCH',
      ...writes,
      ...named('patchPerson', 'Partially update a person'),
      body,
      statuses: patch_statuses,
      handle: call => updatePerson(call, 'patch'),
    }),
    route<EntityBody>({
      method: 'DELETE',
      ...writes,
      ...named('deletePerson', 'Delete a person'),
      handle: deletePerson,
    }),
  ]
}

const stack_id = people_stack_id

function addressOf({ params }: Call): Address {
  return params.uuid === undefined ? { external_id: params.external_id! } : { id: params.uuid.toLowerCase() }
}

async function createPerson(call: Call<EntityBody>): Promise<Answer> {
  const address = addressOfCreate(call.body)
  const done = await writeOne(call, { operation: 'create', stack_id, address, represent: true })
  const path = address && 'external_id' in address ? encodeURIComponent(address.external_id) : `internal/${done.id}`
  return showPerson(call, done.standing!, 201, { Location: `/v1/people/${path}` })
}

async function updatePerson(call: Call<EntityBody>, operation: 'put' | 'patch'): Promise<Answer> {
  const represent = call.preferences.representation
  const done = await writeOne(call, { operation, stack_id, address: addressOf(call), represent })
  if (represent) return showPerson(call, done.standing!, 200)
  return { status: 200, data: true, headers: { ETag: entityTag(done.version) } }
}

async function deletePerson(call: Call<EntityBody>): Promise<Answer> {
  await writeOne(call, { operation: 'delete', stack_id, address: addressOf(call), represent: false })
  return { status: 200, data: true }
}

async function getPerson(call: Call): Promise<Answer> {
  const { db, caller, signal } = call
  const address = addressOf(call)
  const [person] =
    'id' in address
      ? await readById(db, caller.organization.id, stack_id, [address.id], signal)
      : await readByExternalId(db, caller.organization.id, stack_id, [address.external_id], signal)
  if (!person) return fail('not_found', 'There is no such person.')
  return showPerson(call, person, 200)
}

async function showPerson(
  { db, caller, signal }: Call,
  standing: Read,
  status: number,
  headers: Record<string, string> = {},
): Promise<Answer> {
  const definitions = await definitionsAt(db, caller.organization.id, standing.schema_version, signal)
  const data = toPerson(standing, definitions)
  return { status, data, headers: { ...headers, ETag: entityTag(data.version) } }
}
