import type { Organization, Service } from './service.ts'

export type Asked = { address?: string; token?: string; key?: string; headers?: Record<string, string> }
export type Said = {
  status: number
  text: string
  location: string | null
  etag: string | null
  preferenceApplied: string | null
}

/** An organization whose requests carry an Idempotency-Key, and what is stored of it. */
export function keyedOrganization(service: Service, { id, token: ownToken }: Organization) {
  /** One request, under the key `k` unless told otherwise: `said` is what an answer given again repeats. */
  async function ask(method: string, path: string, body: unknown, asked: Asked = {}) {
    const { address = service.address, token = ownToken, key = 'k', headers = {} } = asked
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
    service.hold({ method, path, status: response.status, body: JSON.parse(text) })
    const of = (name: string) => response.headers.get(name)
    const said: Said = {
      status: response.status,
      text,
      location: of('location'),
      etag: of('etag'),
      preferenceApplied: of('preference-applied'),
    }
    return {
      said,
      replayed: of('idempotency-replayed'),
      request_id: of('x-request-id'),
      retryAfter: of('retry-after'),
    }
  }
  const count = async (table: string) => {
    const text = `select count(*)::integer as n from ${table} where organization_id = $1`
    return (await service.sql<{ n: number }>(text, [id]))[0]!.n
  }
  return { ask, changes: () => count('changes'), keys: () => count('idempotency_keys') }
}

export type Keyed = ReturnType<typeof keyedOrganization>
