import type { Route } from '../../src/http/pipeline/route.ts'
import type { Ask } from '../hostile/sender.ts'

/** Two texts that the asking organization knows neither of: one is another organization's, the other nobody's. */
export type Pair = { foreign: string; unknown: string }

/** Pairs by kind of identifier. Both are of one length and sort at one place, so that nothing but the owner differs. */
export type Pairs = {
  external_id: Pair
  uuid: Pair
  record_id: Pair
  stack_key: Pair
  attribute_id: Pair
  attribute_key: Pair
  consent_type_id: Pair
}

/** What an asker has of its own, by the names of parameters, for the other parts of a path. */
export type OwnIds = Record<string, string>

/** One request that names `identifier`, and what kind of identifier stands where. */
export type Case = { where: string; pair: Pair; ask(identifier: string, ownIds: OwnIds): Ask }

const own: OwnIds = { external_id: 'ada', stack_key: 'orders', id: '1' }

const bodies: Record<string, object> = {
  people: { first_name: 'x' },
  records: { attribute_values: { a: 1 } },
  related: { target: 'people' },
}

function bodyOf({ path, method, body }: Route): object | undefined {
  if (!body || (method === 'POST' && /\/(list|filter|export)$/.test(path))) return undefined
  if (path.endsWith('/related')) return bodies.related
  if (path.endsWith('/batch')) return { operations: [] }
  if (path.endsWith('/upsert')) return { external_id: 'upserted' }
  if (path.startsWith('/v1/schema')) return { name: 'x' }
  return path.startsWith('/v1/people') ? bodies.people : bodies.records
}

/** The pair that stands for a parameter of a path. */
function pairOf({ path }: Route, name: string, pairs: Pairs): Pair {
  if (name === 'id') return path.includes('consent') ? pairs.consent_type_id : pairs.attribute_id
  return pairs[name as keyof Pairs]
}

/** Every parameter of a route's path in turn, with the others the asker's own. */
export function pathCases(route: Route, pairs: Pairs): Case[] {
  const { method, path, params = {}, streams, item } = route
  const takesLines = streams && item
  const body = takesLines ? {} : bodyOf(route)
  return Object.keys(params).map(asked => ({
    where: `${method} ${path}: ${asked}`,
    pair: pairOf(route, asked, pairs),
    ask: (identifier, ownIds) => ({
      method,
      path: path.replace(/\{(\w+)\}/g, (_, name) => (name === asked ? identifier : (ownIds[name] ?? own[name]!))),
      body: body && JSON.stringify(body),
      headers: takesLines ? { 'Content-Type': 'application/x-ndjson' } : undefined,
    }),
  }))
}

type Place = { kind: keyof Pairs; what: string; body(identifier: string, ofPeople: boolean): object }

const values = (attribute_values: object) => ({ attribute_values })

/** By a property of a route's body: what identifiers can stand in it, in a body that is right otherwise. */
const places: Record<string, Place[]> = {
  external_id: [{ kind: 'external_id', what: 'a name', body: external_id => ({ external_id }) }],
  attribute_values: [
    { kind: 'external_id', what: 'a link', body: name => values({ referrer: name, buyer: name }) },
    { kind: 'external_id', what: 'links', body: name => values({ friends: [name], bought: [name] }) },
    { kind: 'attribute_key', what: 'a key', body: key => values({ [key]: ['x', 1] }) },
  ],
  consents: [
    {
      kind: 'consent_type_id',
      what: 'a consent type',
      body: id => ({ consents: [{ consent_type_id: Number(id), channel: 'email', state: true }] }),
    },
  ],
  cursor_configuration: [
    { kind: 'uuid', what: 'a cursor', body: after_id => ({ target: 'people', cursor_configuration: { after_id } }) },
    {
      kind: 'record_id',
      what: 'a cursor',
      body: after_id => ({ target: 'orders', cursor_configuration: { after_id } }),
    },
  ],
  filter: [
    { kind: 'uuid', what: 'an id', body: id => ({ filter: { id } }) },
    { kind: 'record_id', what: 'a record_id', body: record_id => ({ filter: { record_id } }) },
    { kind: 'external_id', what: 'a name', body: external_id => ({ filter: { external_id } }) },
    { kind: 'external_id', what: 'a list of names', body: name => ({ filter: { external_id: { $in: [name] } } }) },
    { kind: 'external_id', what: 'a link', body: name => ({ filter: { 'attribute_values.referrer': name } }) },
    {
      kind: 'external_id',
      what: 'a target',
      body: (external_id, ofPeople) => ({
        filter: { [`attribute_values.${ofPeople ? 'referrer' : 'buyer'}`]: { $some: { external_id } } },
      }),
    },
    {
      kind: 'attribute_key',
      what: 'a key',
      body: key => ({ filter: { [`attribute_values.${key}`]: { $exists: true } } }),
    },
    {
      kind: 'attribute_key',
      what: 'a relationship',
      body: key => ({ filter: { [`attribute_values.${key}`]: { $some: {} } } }),
    },
    {
      kind: 'consent_type_id',
      what: 'a consent type',
      body: id => ({ filter: { consents: { $some: { consent_type_id: Number(id), state: true } } } }),
    },
  ],
  target: [{ kind: 'stack_key', what: 'a target', body: target => ({ target }) }],
  attribute_key: [
    { kind: 'attribute_key', what: 'a relationship', body: attribute_key => ({ target: 'people', attribute_key }) },
  ],
  owner: [{ kind: 'stack_key', what: 'an owner', body: owner => ({ owner, key: 'fresh', type: 'text' }) }],
  target_stack: [
    {
      kind: 'stack_key',
      what: 'a target stack',
      body: key => ({ owner: 'people', key: 'fresh', type: 'stack', target_stack: key }),
    },
  ],
  operations: ['put', 'patch', 'delete', 'upsert', 'create'].flatMap((op): Place[] => {
    const body = op === 'delete' ? {} : { body: values({ a: 1 }) }
    const named: Place = {
      kind: 'external_id',
      what: `${op} by name`,
      body: external_id => ({ operations: [{ op, external_id, ...body }] }),
    }
    if (op === 'upsert' || op === 'create') return [named]
    return [
      named,
      { kind: 'uuid', what: `${op} by id`, body: id => ({ operations: [{ op, id, ...body }], atomic: true }) },
      {
        kind: 'record_id',
        what: `${op} by record_id`,
        body: record_id => ({ operations: [{ op, record_id, ...body }] }),
      },
    ]
  }),
}

/** Every identifier that the body of a route can name, at the asker's own address. */
export function bodyCases(route: Route, pairs: Pairs): Case[] {
  const { method, path, body } = route
  const properties = Object.keys((body as { properties?: object } | undefined)?.properties ?? {})
  return properties.flatMap(property =>
    (places[property] ?? []).map(({ kind, what, body: bodyFrom }) => ({
      where: `${method} ${path}: ${property}, ${what}`,
      pair: pairs[kind],
      ask: (identifier: string, ownIds: OwnIds): Ask => {
        const sent = bodyFrom(identifier, path.startsWith('/v1/people')) as Record<string, unknown>
        if (!properties.includes('target')) delete sent.target
        return {
          method,
          path: path.replace(/\{(\w+)\}/g, (_, name) => ownIds[name] ?? own[name]!),
          body: JSON.stringify(path.endsWith('/upsert') ? { external_id: 'upserted', ...sent } : sent),
          headers: property === 'attribute_values' ? { Prefer: 'references=strict' } : undefined,
        }
      },
    })),
  )
}
