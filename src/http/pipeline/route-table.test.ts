import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Organization, type Service, startService } from '../../../test/support/service.ts'
import { routeTable } from '../../app.ts'
import { loadConfig } from '../../config.ts'
import { isExternalId, isObjectId, isUuid } from '../../formats.ts'
import type { Endpoint } from './exchange.ts'
import type { ParameterKind, Route } from './route.ts'
import { addressesOf } from './route-precedence.ts'
import { createPlaces } from './router.ts'

const table = routeTable({ config: loadConfig({}) })

const holds: Record<ParameterKind, (text: string) => boolean> = {
  external_id: isExternalId,
  uuid: isUuid,
  object_id: isObjectId,
  key: text => /^[a-z][a-z0-9_]{0,62}$/.test(text) && text !== 'people',
  number: text => /^\d+$/.test(text),
}
/** A value that both kinds take, where there is one. */
const samples = [randomUUID(), '01936f3e0a5c7c3e9d0a5b6f', 'a', '1']

type Part = string | ParameterKind[]
type Shape = Pick<Route, 'method' | 'path' | 'params'>

const partsOf = ({ path, params = {} }: Shape): Part[] =>
  path.split('/').map(segment => (segment.startsWith('{') ? [params[segment.slice(1, -1)]!] : segment))

/** A value of a segment that is of both routes; undefined where there is none. */
function shared(one: Part, other: Part): string | undefined {
  if (typeof one === 'string' && typeof other === 'string') return one === other ? one : undefined
  const literals = [one, other].filter(part => typeof part === 'string')
  const kinds = [one, other].filter(part => typeof part !== 'string').flat()
  return (literals.length > 0 ? literals : samples).find(text => kinds.every(kind => holds[kind](text)))
}

/** An address that belongs to both routes. A `%2F` stays within its segment, so segments are compared one by one. */
function ambiguous(one: Shape, other: Shape): string | undefined {
  const [ones, others] = [partsOf(one), partsOf(other)]
  if (one.method !== other.method || ones.length !== others.length) return undefined
  const segments = ones.map((part, index) => shared(part, others[index]!))
  return segments.every(segment => segment !== undefined) ? segments.join('/') : undefined
}

function ambiguities(routes: Shape[]): string[] {
  return routes.flatMap((one, index) =>
    routes.slice(index + 1).flatMap(other => {
      const address = ambiguous(one, other)
      return address === undefined ? [] : [`${one.method} ${address} is of ${one.path} and of ${other.path}`]
    }),
  )
}

/** Every word that stands in an address: an external identifier may be any of them. */
const words = [...new Set(table.flatMap(({ path }) => path.split('/')))].filter(word => word && !word.startsWith('{'))

/** The routes that an external identifier reaches instead of the one it is written into. */
function astray(routes: Route[]): string[] {
  const places = createPlaces()
  for (const row of routes)
    for (const path of addressesOf(row, routes))
      places.add({ method: row.method, path, row, handle: () => {} } as Endpoint)
  const escaped = (word: string) => `%${word.charCodeAt(0).toString(16)}${word.slice(1)}`
  const values = [...words, 'history', ...words.map(escaped), `internal%2F${samples[0]}`, 'a%2Frelated', '%2e%2fexport']
  return routes.flatMap(row =>
    values.flatMap(value => {
      if (!row.path.includes('{external_id}')) return []
      const address = row.path.replace('{external_id}', value).replace('{stack_key}', 'orders')
      return places.find(row.method, address)?.row === row ? [] : [`${row.method} ${address}`]
    }),
  )
}

describe('an external identifier reaches no other endpoint', () => {
  test('because no address belongs to two routes of one method', () => {
    expect(ambiguities(table)).toEqual([])
  })

  test('because the router takes every word and every escape for the identifier it is', () => {
    expect(astray(table)).toEqual([])
  })

  test('also where one route ends in a word and the other in an internal identifier', () => {
    const like = table.find(({ operationId }) => operationId === 'getPerson')!
    const history: Route = { ...like, path: '/v1/people/{external_id}/history', operationId: 'history' }
    expect(ambiguities([...table, history])).toEqual([])
    expect(astray([...table, history])).toEqual([])
  })

  test('and a route that would be reached is found', () => {
    const exporting: Route = { ...table[0]!, method: 'GET', path: '/v1/people/export' }
    expect(ambiguities([...table, exporting])).toEqual([
      'GET /v1/people/export is of /v1/people/{external_id} and of /v1/people/export',
    ])
    expect(astray([...table, exporting])).toContain('GET /v1/people/export')
  })
})

describe('over HTTP', () => {
  let service: Service
  let organization: Organization
  beforeAll(async () => {
    service = await startService()
    organization = await service.organization()
    await organization.send('POST', '/v1/schema/stacks', { key: 'orders', kind: 'item' })
  })
  afterAll(() => service.stop())

  const odd = ['history', `internal/${samples[0]}`, 'a/related', 'v1/people/export', '%2F', '..a']
  const names = new Set([...words, ...odd])

  test.each(['/v1/people', '/v1/stacks/orders'])('everyone below %s is reached by any word', async path => {
    const { send } = organization
    for (const external_id of names) {
      const address = `${path}/${encodeURIComponent(external_id)}`
      const told: unknown[] = [(await send('POST', path, { external_id })).status]
      const read = await send('GET', address)
      told.push(read.status, read.body.data.external_id)
      told.push((await send('PATCH', address, { attribute_values: { a: 1 } })).status)
      told.push((await send('PUT', address, {}, { 'If-Match': '"2"' })).status)
      told.push((await send('POST', `${address}/related`, { target: 'people' })).status)
      told.push((await send('DELETE', address)).status, (await send('GET', address)).status)
      expect([external_id, ...told]).toEqual([external_id, 201, 200, external_id, 200, 200, 200, 200, 404])
    }
    expect((await send('POST', `${path}/list`, {})).body.data.items).toEqual([])
  })

  test('a stack cannot be called as the path of the people', async () => {
    const reply = await organization.send('POST', '/v1/schema/stacks', { key: 'people', kind: 'item' })
    expect([reply.status, reply.body.details?.[0]?.path]).toEqual([400, '/key'])
  })
})
