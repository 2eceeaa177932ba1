import type { Route } from '../../src/route/route.ts'
import type { RawRequest } from '../hostile/sender.ts'

/** Two identifiers that the requesting organization does not have. `foreign` belongs to another organization, `unknown` to none. */
export type Pair = { foreign: string; unknown: string }

/** Pairs by kind of identifier. Both have the same length and sort order, so that they differ only in their owner. */
export type Pairs = {
  external_id: Pair
  email: Pair
  uuid: Pair
  record_id: Pair
  stack_key: Pair
  attribute_id: Pair
  attribute_key: Pair
  consent_type_id: Pair
  text_version: Pair
  webhook_id: Pair
  rule_id: Pair
  segment_key: Pair
  role_key: Pair
  session_id: Pair
  client_id: Pair
  import_id: Pair
  mapping_id: Pair
  job_id: Pair
  jti: Pair
  account_id: Pair
  source_key: Pair
}

/** Identifiers of the requesting organization by parameter name, for the other parts of a path. */
export type OwnIds = Record<string, string>

/** A request with `identifier` at one position. `where` describes the position, `pair` has the identifiers of its kind. */
export type Case = { where: string; pair: Pair; buildRequest(identifier: string, ownIds: OwnIds): RawRequest }

const defaultIds: OwnIds = {
  external_id: 'ada',
  stack_key: 'orders',
  id: '1',
  version: '1',
  consent_type_id: '1',
  channel: 'sms',
  segment_key: 'shared',
  role_key: 'shared',
}

const bodies: Record<string, object> = {
  people: { first_name: 'x' },
  records: { attribute_values: { a: 1 } },
  related: { target: 'people' },
  contactable: { consent_type_id: 1, channel: 'email' },
}

function bodyOf({ path, method, body }: Route): object | undefined {
  if (!body || (method === 'POST' && /\/(list|filter|export|aggregate)$/.test(path))) return undefined
  if (path.endsWith('/related')) return bodies.related
  if (path.endsWith('/get')) return { external_ids: ['ada'] }
  if (path.endsWith('/search')) return { text: 'ada' }
  if (/\/(erase|hold)$/.test(path)) return { reason: 'x' }
  if (path.startsWith('/v1/accounts')) return { state: 'disabled' }
  if (path.startsWith('/v1/retention-rules')) return { daily_limit: 5 }
  if (path.endsWith('/undo')) return {}
  if (path === '/v1/import-mappings') return { owner: 'people', header: ['Nr'], fields: [null] }
  if (/\/(un)?merge$/.test(path)) return { from: 'nobody' }
  if (path.endsWith('/contactable')) return bodies.contactable
  if (path.endsWith('/batch')) return { operations: [] }
  if (path.endsWith('/bulk')) return { filter: {}, change: { op: 'delete' }, dry_run: true }
  if (path.endsWith('/consent-links')) return {}
  if (path.endsWith('/upsert')) return { external_id: 'upserted' }
  if (path.endsWith('/texts')) return { language: 'en', text: 'x' }
  if (path.startsWith('/v1/schema') || path.startsWith('/v1/segments') || path.startsWith('/v1/roles'))
    return { name: 'x' }
  if (path.startsWith('/v1/webhooks')) return path.endsWith('/replay') ? { after: 0 } : { description: 'x' }
  return path.startsWith('/v1/people') ? bodies.people : bodies.records
}

/** Returns the pair for a path parameter. */
function pairOf({ path }: Route, name: string, pairs: Pairs): Pair {
  if (path.startsWith('/v1/webhooks')) return pairs.webhook_id
  if (path.startsWith('/v1/retention-rules')) return pairs.rule_id
  if (name === 'version') return pairs.text_version
  if (name === 'key') return pairs.source_key
  if (name === 'address') return pairs.email
  if (name === 'id') return path.includes('consent') ? pairs.consent_type_id : pairs.attribute_id
  return pairs[name as keyof Pairs]
}

/** Whether a path parameter is an identifier. Positions in a ledger and channels belong to no organization. */
export const isIdentifier = ({ path }: Route, name: string) => !path.startsWith('/v1/ledger/') && name !== 'channel'

/** Returns a case for every path parameter of a route. The other parameters are the requesting organization's own. */
export function pathCases(route: Route, pairs: Pairs): Case[] {
  const { method, path, params = {}, line } = route
  const takesLines = line !== undefined
  const body = takesLines ? {} : bodyOf(route)
  const probes = Object.keys(params).filter(name => isIdentifier(route, name))
  return probes.map(probed => ({
    where: `${method} ${path}: ${probed}`,
    pair: pairOf(route, probed, pairs),
    buildRequest: (identifier, ownIds) => ({
      method,
      path: path.replace(/\{(\w+)\}/g, (_, name) =>
        name === probed ? identifier : (ownIds[name] ?? defaultIds[name]!),
      ),
      body: body && JSON.stringify(body),
      headers: takesLines ? { 'Content-Type': 'application/x-ndjson' } : undefined,
    }),
  }))
}

type BodyPosition = { kind: keyof Pairs; description: string; body(identifier: string, isPeople: boolean): object }

const values = (attribute_values: object) => ({ attribute_values })

/** A webhook that sends nothing. */
export const webhook = (properties: object = {}) => ({
  url: 'https://receiver.invalid/',
  events: ['person.*'],
  active: false,
  ...properties,
})

/** By body property, the positions that take an identifier, each with an otherwise valid body. */
const bodyPositions: Record<string, BodyPosition[]> = {
  external_id: [{ kind: 'external_id', description: 'a name', body: external_id => ({ external_id }) }],
  email: [{ kind: 'email', description: 'an email', body: email => ({ email }) }],
  text: [
    { kind: 'external_id', description: 'words of a name', body: text => ({ text }) },
    { kind: 'email', description: 'words of an email', body: text => ({ text }) },
  ],
  owners: [
    { kind: 'stack_key', description: 'a stack', body: key => ({ text: 'ada', owners: ['people', key] }) },
    {
      kind: 'external_id',
      description: 'words in several owners',
      body: text => ({ text, owners: ['people', 'orders'] }),
    },
  ],
  match: [{ kind: 'email', description: 'an email', body: email => ({ match: ['email'], email }) }],
  attribute_values: [
    { kind: 'external_id', description: 'a link', body: name => values({ referrer: name, buyer: name }) },
    { kind: 'external_id', description: 'links', body: name => values({ friends: [name], bought: [name] }) },
    { kind: 'attribute_key', description: 'a key', body: key => values({ [key]: ['x', 1] }) },
  ],
  from: [{ kind: 'external_id', description: 'a name', body: from => ({ from }) }],
  from_id: [{ kind: 'uuid', description: 'an id', body: from_id => ({ from_id }) }],
  external_ids: [
    {
      kind: 'external_id',
      description: 'a name',
      body: name => ({ ...bodies.contactable, external_ids: [name, 'nobody'] }),
    },
  ],
  ids: [{ kind: 'uuid', description: 'ids', body: id => ({ ids: [id, id] }) }],
  events: [
    {
      kind: 'external_id',
      description: 'a person',
      body: external_id => ({ events: [{ channel: 'email', external_id, type: 'delivered' }] }),
    },
    {
      kind: 'email',
      description: 'an address',
      body: address => ({ events: [{ channel: 'email', address, type: 'unsubscribe' }] }),
    },
  ],
  segment: [
    {
      kind: 'segment_key',
      description: 'a segment',
      body: segment => ({ segment, key: 'fresh', after_days: 30, action: 'erase' }),
    },
  ],
  consent_type_id: [
    {
      kind: 'consent_type_id',
      description: 'a consent type',
      body: id => ({ external_ids: ['ada'], consent_type_id: Number(id), channel: 'email' }),
    },
  ],
  consents: [
    {
      kind: 'consent_type_id',
      description: 'a consent type',
      body: id => ({ consents: [{ consent_type_id: Number(id), channel: 'email', state: true }] }),
    },
  ],
  cursor_configuration: [
    {
      kind: 'uuid',
      description: 'a cursor',
      body: after_id => ({ target: 'people', cursor_configuration: { after_id } }),
    },
    {
      kind: 'record_id',
      description: 'a cursor',
      body: after_id => ({ target: 'orders', cursor_configuration: { after_id } }),
    },
  ],
  fields: [
    {
      kind: 'attribute_key',
      description: 'a key',
      body: key => ({ target: 'people', fields: ['external_id', `attribute_values.${key}`] }),
    },
  ],
  include: [
    { kind: 'attribute_key', description: 'a relationship', body: key => ({ target: 'people', include: [key] }) },
  ],
  label: [{ kind: 'attribute_key', description: 'a template', body: key => ({ label: `{${key}}` }) }],
  sort: [
    { kind: 'attribute_key', description: 'a key', body: key => ({ sort: { field: `attribute_values.${key}` } }) },
  ],
  filter: [
    { kind: 'uuid', description: 'an id', body: id => ({ filter: { id } }) },
    { kind: 'record_id', description: 'a record_id', body: record_id => ({ filter: { record_id } }) },
    { kind: 'external_id', description: 'a name', body: external_id => ({ filter: { external_id } }) },
    { kind: 'segment_key', description: 'a segment', body: key => ({ filter: { $segment: key } }) },
    {
      kind: 'external_id',
      description: 'a list of names',
      body: name => ({ filter: { external_id: { $in: [name] } } }),
    },
    { kind: 'external_id', description: 'a link', body: name => ({ filter: { 'attribute_values.referrer': name } }) },
    {
      kind: 'external_id',
      description: 'a target',
      body: (external_id, isPeople) => ({
        filter: { [`attribute_values.${isPeople ? 'referrer' : 'buyer'}`]: { $some: { external_id } } },
      }),
    },
    {
      kind: 'attribute_key',
      description: 'a key',
      body: key => ({ filter: { [`attribute_values.${key}`]: { $exists: true } } }),
    },
    {
      kind: 'attribute_key',
      description: 'a relationship',
      body: key => ({ filter: { [`attribute_values.${key}`]: { $some: {} } } }),
    },
    {
      kind: 'consent_type_id',
      description: 'a consent type',
      body: id => ({ filter: { consents: { $some: { consent_type_id: Number(id), state: true } } } }),
    },
  ],
  group_by: [{ kind: 'attribute_key', description: 'a key', body: key => ({ group_by: [`attribute_values.${key}`] }) }],
  measures: [
    {
      kind: 'attribute_key',
      description: 'a key',
      body: key => ({ measures: [{ op: 'count', field: `attribute_values.${key}` }] }),
    },
  ],
  stacks: [
    { kind: 'stack_key', description: 'a stack', body: key => webhook({ events: ['record.*'], stacks: [key] }) },
  ],
  keys: [
    { kind: 'attribute_key', description: 'a field', body: key => webhook({ keys: [`attribute_values.${key}`] }) },
  ],
  target: [{ kind: 'stack_key', description: 'a target', body: target => ({ target }) }],
  attribute_key: [
    {
      kind: 'attribute_key',
      description: 'a relationship',
      body: attribute_key => ({ target: 'people', attribute_key }),
    },
  ],
  owner: [{ kind: 'stack_key', description: 'an owner', body: owner => ({ owner, key: 'fresh', type: 'text' }) }],
  target_stack: [
    {
      kind: 'stack_key',
      description: 'a target stack',
      body: key => ({ owner: 'people', key: 'fresh', type: 'stack', target_stack: key }),
    },
  ],
  operations: ['put', 'patch', 'delete', 'upsert', 'create'].flatMap((op): BodyPosition[] => {
    const body = op === 'delete' ? {} : { body: values({ a: 1 }) }
    const named: BodyPosition = {
      kind: 'external_id',
      description: `${op} by name`,
      body: external_id => ({ operations: [{ op, external_id, ...body }] }),
    }
    if (op === 'upsert' || op === 'create') return [named]
    return [
      named,
      { kind: 'uuid', description: `${op} by id`, body: id => ({ operations: [{ op, id, ...body }], atomic: true }) },
      {
        kind: 'record_id',
        description: `${op} by record_id`,
        body: record_id => ({ operations: [{ op, record_id, ...body }] }),
      },
    ]
  }),
}

/** Returns a case for every identifier that the body of a route takes. The path is the requesting organization's own. */
export function bodyCases(route: Route, pairs: Pairs): Case[] {
  const { method, path, body } = route
  const properties = Object.keys((body as { properties?: object } | undefined)?.properties ?? {})
  return properties.flatMap(property =>
    (bodyPositions[property] ?? []).map(({ kind, description, body: buildBody }) => ({
      where: `${method} ${path}: ${property}, ${description}`,
      pair: pairs[kind],
      buildRequest: (identifier: string, ownIds: OwnIds): RawRequest => {
        const isPeople = path.startsWith('/v1/people') || path.startsWith('/v1/segments')
        const probeBody = buildBody(identifier, isPeople) as Record<string, unknown>
        if (method === 'POST' && path === '/v1/segments') probeBody.key = 'fresh'
        if (properties.includes('interval')) probeBody.interval = 'day'
        for (const name of ['target', 'external_ids', 'consent_type_id', 'channel'])
          if (!properties.includes(name)) delete probeBody[name]
        return {
          method,
          path: path.replace(/\{(\w+)\}/g, (_, name) => ownIds[name] ?? defaultIds[name]!),
          body: JSON.stringify(path.endsWith('/upsert') ? { external_id: 'upserted', ...probeBody } : probeBody),
          headers: property === 'attribute_values' ? { Prefer: 'references=strict' } : undefined,
        }
      },
    })),
  )
}
