import { requireRole } from '../auth/caller-role.ts'
import { type Client, findClient, insertClient, isClientName, readClientPage, revokeClient } from '../auth/clients.ts'
import type { Call } from '../route/call.ts'
import { grantedRole, requireGrantable } from '../route/grantable.ts'
import { listPage } from '../route/result.ts'
import { splitScopes } from '../route/scopes.ts'
import { actorNameMessage, organizationOf } from '../values/actor-names.ts'
import { createValueRefusal, Fault, refuse } from '../values/errors.ts'
import { withUnseen } from '../values/invisible-characters.ts'
import type { AccessClientBody, AccessClientShape, ClientsQuery } from './schema.ts'

const defaultLimit = 50

/** A client as a read shows it. */
export const clientToJson = ({ id, name, scope, role, created_at, revoked_at }: Client): AccessClientShape => ({
  client_id: id,
  name,
  scopes: splitScopes(scope) as AccessClientShape['scopes'],
  role,
  created_at,
  revoked_at,
})

/** Reads a page of the clients of the caller's organization, newest first. */
export async function listApiClients({ context: { db }, caller, body, signal }: Call<ClientsQuery>) {
  const { before, limit = defaultLimit } = body
  const clients = await readClientPage(db, caller.organization.id, { before, limit: limit + 1 }, signal)
  return listPage(clients, limit, clientToJson)
}

/** Reads a client of the caller's organization. Throws a Fault of 404. */
export async function findApiClient({ context: { db }, caller, params, signal }: Call): Promise<AccessClientShape> {
  const client = await findClient(db, caller.organization.id, params.client_id!, signal)
  return client ? clientToJson(client) : refuse('not_found', 'There is no client with this id.')
}

/**
 * Creates a client of the caller's organization. Throws a Fault of 400 for a scope that the caller does not have, and for a name with
 * a control character.
 */
export async function createApiClient({ context, caller, body, signal }: Call<AccessClientBody>) {
  const { name, scopes } = body
  requireGrantable(caller, scopes)
  const role = grantedRole(caller, body.role)
  if (role !== undefined) await requireRole(context, role, signal)
  if (!isClientName(name))
    throw new Fault(createValueRefusal('/name', withUnseen(`The name ${actorNameMessage}.`, name)))
  const scope = [...new Set(scopes)].join(' ')
  const { client_secret, ...created } = await insertClient(
    context.db,
    caller.organization,
    { name, scope, role },
    signal,
  )
  return { ...clientToJson(created), client_secret }
}

/** Revokes a client of the caller's organization. Throws a Fault of 404, which is the same for a client of another organization. */
export async function revokeApiClient({ context: { db }, caller, params }: Call): Promise<true> {
  const client_id = params.client_id!
  if (organizationOf(client_id) !== caller.organization.key)
    refuse('not_found', `The client ${JSON.stringify(client_id)} does not exist or is already revoked.`)
  await revokeClient(db, client_id)
  return true
}
