import type { Organization, Service } from './service.ts'

/**
 * The options of a request. By default it goes to the fixture's service, with the organization's token and the key `k`.
 */
export type KeyedRequest = { address?: string; token?: string; key?: string; headers?: Record<string, string> }
/** The parts of a response that a replay repeats. */
export type ReplayedParts = {
  status: number
  text: string
  location: string | null
  etag: string | null
  preferenceApplied: string | null
}

/** A client of an organization whose requests have an Idempotency-Key, with counts of its stored changes and keys. */
export function keyedOrganization(service: Service, { id, token: ownToken }: Organization) {
  /** Sends a request under the key `k`, unless `options` name another. Checks the response against the contract. */
  async function ask(method: string, path: string, body: unknown, options: KeyedRequest = {}) {
    const { address = service.address, token = ownToken, key = 'k', headers = {} } = options
    const response = await fetch(address + path, {
      method,
      headers: {
        Authorization: `Bearer ${token}`,
        'Idempotency-Key': key,
        ...(body !== undefined && { 'Content-Type': 'application/json' }),
        ...headers,
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    const text = await response.text()
    service.checkResponse({ method, path, status: response.status, body: JSON.parse(text) })
    const headerOf = (name: string) => response.headers.get(name)
    const said: ReplayedParts = {
      status: response.status,
      text,
      location: headerOf('location'),
      etag: headerOf('etag'),
      preferenceApplied: headerOf('preference-applied'),
    }
    return {
      said,
      replayed: headerOf('idempotency-replayed'),
      request_id: headerOf('x-request-id'),
      retryAfter: headerOf('retry-after'),
    }
  }
  const count = async (table: string) => {
    const text = `select count(*)::integer as n from ${table} where organization_id = $1`
    return (await service.sql<{ n: number }>(text, [id]))[0]!.n
  }
  return { ask, changes: () => count('changes'), keys: () => count('idempotency_keys') }
}

export type KeyedClient = ReturnType<typeof keyedOrganization>
