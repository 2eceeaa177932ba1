import { randomUUID } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { useService } from '../../../test/support/service.ts'
import { useSharedShop } from '../../../test/support/shop.ts'
import { routeTable } from '../../process/app.ts'
import { loadConfig } from '../../process/config.ts'
import type { ParameterKind, Route } from '../../route/route.ts'
import { isChannel } from '../../values/channels.ts'
import { isExternalId, isObjectId, isUuid } from '../../values/formats.ts'
import { compile } from '../input/validate.ts'
import { createRouter, pathsOf } from './router.ts'
import type { RowEndpoint } from './row-endpoint.ts'

const table = routeTable({ config: loadConfig({}) })

const holds: Record<ParameterKind, (text: string) => boolean> = {
  external_id: isExternalId,
  uuid: isUuid,
  object_id: isObjectId,
  key: text => /^[a-z][a-z0-9_]{0,62}$/.test(text) && text !== 'people',
  channel: isChannel,
  client_id: text => /^[a-z][a-z0-9_-]{0,62}\.[\w-]{1,64}$/.test(text),
  number: text => /^\d+$/.test(text),
  count: text => /^\d+$/.test(text),
  path: text => text !== '',
}
/** Values that two kinds of parameters may have in common. */
const samples = [randomUUID(), '01936f3e0a5c7c3e9d0a5b6f', 'a', '1']

type Part = string | ParameterKind[]
type Shape = Pick<Route, 'method' | 'path' | 'params'>

const partsOf = ({ path, params = {} }: Shape): Part[] =>
  path.split('/').map(segment => (segment.startsWith('{') ? [params[segment.slice(1, -1)]!] : segment))

/** A value of a segment that matches both routes, or undefined if there is none. */
function findSharedValue(one: Part, other: Part): string | undefined {
  if (typeof one === 'string' && typeof other === 'string') return one === other ? one : undefined
  const literals = [one, other].filter(part => typeof part === 'string')
  const kinds = [one, other].filter(part => typeof part !== 'string').flat()
  return (literals.length > 0 ? literals : samples).find(text => kinds.every(kind => holds[kind](text)))
}

/** A path that matches both routes. A `%2F` stays within its segment, so segments are compared one by one. */
function findAmbiguousPath(one: Shape, other: Shape): string | undefined {
  const [ones, others] = [partsOf(one), partsOf(other)]
  if (one.method !== other.method || ones.length !== others.length) return undefined
  const segments = ones.map((part, index) => findSharedValue(part, others[index]!))
  return segments.every(segment => segment !== undefined) ? segments.join('/') : undefined
}

function findAmbiguities(routes: Shape[]): string[] {
  return routes.flatMap((one, index) =>
    routes.slice(index + 1).flatMap(other => {
      const address = findAmbiguousPath(one, other)
      return address === undefined ? [] : [`${one.method} ${address} is of ${one.path} and of ${other.path}`]
    }),
  )
}

/** All words of the paths. An external identifier may be any of them. */
const words = [...new Set(table.flatMap(({ path }) => path.split('/')))].filter(word => word && !word.startsWith('{'))

/** The requests that reach another route instead of the route with the external identifier. */
function findMisrouted(routes: Route[]): string[] {
  const router = createRouter()
  for (const row of routes)
    for (const path of pathsOf(row, routes)) router.add({ method: row.method, path, row } as RowEndpoint)
  const escaped = (word: string) => `%${word.charCodeAt(0).toString(16)}${word.slice(1)}`
  const values = [...words, 'history', ...words.map(escaped), `internal%2F${samples[0]}`, 'a%2Frelated', '%2e%2fexport']
  return routes.flatMap(row =>
    values.flatMap(value => {
      if (!row.path.includes('{external_id}')) return []
      const address = row.path.replace('{external_id}', value).replace('{stack_key}', 'orders')
      const found = router.find(row.method, address)
      return found && 'row' in found && found.row === row ? [] : [`${row.method} ${address}`]
    }),
  )
}

describe('an external identifier', () => {
  it('is unambiguous, because no path belongs to two routes of one method', () => {
    expect(findAmbiguities(table)).toEqual([])
  })

  it('may be any word and any escape without reaching another route', () => {
    expect(findMisrouted(table)).toEqual([])
  })

  it('reaches no other route if one ends in a word and the other in an internal identifier', () => {
    const like = table.find(({ operationId }) => operationId === 'getPerson')!
    const notes: Route = { ...like, path: '/v1/people/{external_id}/notes', operationId: 'notes' }
    expect(findAmbiguities([...table, notes])).toEqual([])
    expect(findMisrouted([...table, notes])).toEqual([])
  })

  it('is found by these checks to reach a conflicting route', () => {
    const exporting: Route = { ...table[0]!, method: 'GET', path: '/v1/people/export' }
    expect(findAmbiguities([...table, exporting])).toEqual([
      'GET /v1/people/export is of /v1/people/{external_id} and of /v1/people/export',
    ])
    expect(findMisrouted([...table, exporting])).toContain('GET /v1/people/export')
  })
})

it('has only schemas that compile, which the service does at the first request of a row', () => {
  const schemas = table.flatMap(({ body, query, item, line }) => [body, query, item, line])
  for (const schema of schemas) if (schema) compile(schema)
})

describe('external identifiers over HTTP', () => {
  const service = useService()
  const organization = useSharedShop(service, 'orders')

  const odd = ['history', `internal/${samples[0]}`, 'a/related', 'v1/people/export', '%2F', '..a']
  const names = new Set([...words, ...odd])

  it.each(['/v1/people', '/v1/stacks/orders'])('below %s may be any word', async path => {
    const { send } = organization
    for (const external_id of names) {
      const address = `${path}/${encodeURIComponent(external_id)}`
      const results: unknown[] = [(await send('POST', path, { external_id })).status]
      const read = await send('GET', address)
      results.push(read.status, read.body.data.external_id)
      results.push((await send('PATCH', address, { attribute_values: { a: 1 } })).status)
      results.push((await send('PUT', address, {}, { 'If-Match': '"2"' })).status)
      results.push((await send('POST', `${address}/related`, { target: 'people' })).status)
      results.push((await send('DELETE', address)).status, (await send('GET', address)).status)
      expect([external_id, ...results]).toEqual([external_id, 201, 200, external_id, 200, 200, 200, 200, 404])
    }
    expect((await send('POST', `${path}/list`, {})).body.data.items).toEqual([])
  })

  it('cannot conflict with the key of a stack, because no stack may have the key people', async () => {
    const reply = await organization.send('POST', '/v1/schema/stacks', { key: 'people', kind: 'item' })
    expect([reply.status, reply.body.details?.[0]?.path]).toEqual([400, '/key'])
  })
})
