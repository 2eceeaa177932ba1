import type { RawRequest } from './sender.ts'

/** Texts with a special meaning to a parser, a shell or a log on the way. All but one contain the marker that finds them in the log. */
export function hostileStrings(mark: string): string[] {
  return [
    `'; drop table entities; -- ${mark}`,
    `${mark}' or '1'='1`,
    `"${mark}" or 1=1 --`,
    `\\'; select pg_sleep(9); -- ${mark}`,
    `$$${mark}$$; select 1`,
    `$1 ${mark} $2::text`,
    `/*${mark}*/ union select null --`,
    `E'\\x27${mark}'`,
    `${mark}\u0000`,
    `%00${mark}%27`,
    `\\u0000${mark}`,
    `\ud800${mark}`,
    `${mark}\udc00`,
    `\ufeff${mark}\ufeff`,
    `\u202e${mark}\u2066\u200f`,
    `${mark}\n2026-01-01 00:00:00.000 UTC [1] LOG:  statement: drop table entities`,
    `${mark}\r\nX-Injected: yes\r\n\r\n`,
    `__proto__`,
    `__proto__.${mark}`,
    `constructor.prototype.${mark}`,
    `{{${mark}}}\${${mark}}<%= ${mark} %>`,
    `../../${mark}/..%2f`,
    `${mark}${'x'.repeat(65_536 - mark.length)}`,
    `${mark}${'é'.repeat(32_768)}`,
    `\u{1f600}\u0300${mark}\uffff`,
    `${mark}\u0085\u2028`,
    `,"${mark}":{"$gt":""}}`,
  ]
}

/** Percent-encodes a text for a path or a query. A lone surrogate becomes the bytes ED A0 80, which are invalid UTF-8. */
export function percentEncode(text: string): string {
  return [...text].map(character => (character.isWellFormed() ? encodeURIComponent(character) : '%ED%A0%80')).join('')
}

type Position = { name: string; buildRequest(text: string): RawRequest }

const bodyPosition = (name: string, path: string, bodyOf: (text: string) => unknown): Position => ({
  name,
  buildRequest: text => ({ method: 'POST', path, body: JSON.stringify(bodyOf(text)) }),
})
const addressPosition = (method: string, pathOf: (text: string) => string): Position => ({
  name: `${method} ${pathOf('…')}`,
  buildRequest: text => ({
    method,
    path: pathOf(percentEncode(text)),
    body: method === 'GET' || method === 'DELETE' ? undefined : '{"attribute_values":{"a":1}}',
  }),
})

const values = (attribute_values: object) => ({ attribute_values })
const filters: Record<string, (text: string) => unknown> = {
  'a field': text => ({ [text]: 1 }),
  'an attribute': text => ({ [`attribute_values.${text}`]: 1 }),
  'an operator': text => ({ first_name: { [text]: 1 } }),
  'a quantifier': text => ({
    'attribute_values.referrer': { $some: { [`attribute_values.${text}`]: { $contains: text } } },
  }),
  'a value': text => ({ first_name: text }),
  'a value of an attribute': text => ({ 'attribute_values.free': text }),
  'a value of an indexed attribute': text => ({ 'attribute_values.city': text }),
  'a range': text => ({ 'attribute_values.city': { $gte: text, $lt: `${text}z` } }),
  'a search': text => ({
    $or: [
      { email: { $contains: text } },
      { last_name: { $starts_with: text } },
      { 'attribute_values.x': { $ends_with: text } },
    ],
  }),
  'a list': text => ({ external_id: { $in: [text, { [text]: [text] }] } }),
  'a structure': text => ({ 'attribute_values.free': { $eq: { [text]: [text] } } }),
  'an identifier': text => ({ id: text }),
  'a time': text => ({ created_at: { $gt: text } }),
  'a contact': text => ({ contactable: { consent_type_id: 1, channel: text } }),
  'a consent': text => ({ consents: { $some: { channel: text } } }),
  'a target': text => ({ 'attribute_values.referrer': text }),
  'a negation': text => ({ $not: { $and: [{ 'attribute_values.tags': text }, { state: text }] } }),
}

const addresses = [
  ...['GET', 'PUT', 'PATCH', 'DELETE'].flatMap(method => [
    addressPosition(method, text => `/v1/people/${text}`),
    addressPosition(method, text => `/v1/people/internal/${text}`),
    addressPosition(method, text => `/v1/stacks/orders/${text}`),
    addressPosition(method, text => `/v1/stacks/${text}/o1`),
    addressPosition(method, text => `/v1/stacks/orders/internal/${text}`),
  ]),
  ...['list', 'filter', 'batch', 'upsert', 'ada/related'].map(suffix =>
    addressPosition('POST', text => `/v1/stacks/${text}/${suffix}`),
  ),
  addressPosition('POST', text => `/v1/people/${text}/related`),
  addressPosition('GET', text => `/v1/schema/stacks/${text}`),
  addressPosition('GET', text => `/v1/schema/attributes/${text}`),
  addressPosition('PATCH', text => `/v1/schema/consent-types/${text}`),
  addressPosition('DELETE', text => `/v1/sessions/${text}`),
  addressPosition('POST', text => `/v1/people?${text}=1`),
  addressPosition('POST', text => `/v1/people/list?cursor_configuration[after_id]=${text}`),
  ...['POST /v1/people', 'PATCH /v1/people/ada', 'POST /v1/people/batch', 'DELETE /v1/people/nobody'].map(row => {
    const [method, path] = row.split(' ') as [string, string]
    return addressPosition(method, text => `${path}?dry_run=${text}`)
  }),
  {
    name: 'a query',
    buildRequest: (text: string): RawRequest => ({
      method: 'POST',
      path: `/v1/people?attribute_values[${percentEncode(text)}]=${percentEncode(text)}`,
    }),
  },
  {
    name: 'a query of a field',
    buildRequest: (text: string): RawRequest => ({
      method: 'POST',
      path: `/v1/people?first_name=${percentEncode(text)}`,
    }),
  },
]

const people = [
  bodyPosition('an attribute key', '/v1/people', text => values({ [text]: 1 })),
  bodyPosition('an attribute value', '/v1/people', text => values({ free: text })),
  bodyPosition('a nested key', '/v1/people', text => values({ free: [{ [text]: { [text]: text } }] })),
  bodyPosition('an indexed value', '/v1/people', text => values({ city: text, tags: [text] })),
  bodyPosition('an external identifier', '/v1/people', text => ({ external_id: text })),
  bodyPosition('a profile field', '/v1/people', text => ({ first_name: text, mobile_number: text })),
  bodyPosition('an email', '/v1/people', text => ({ email: `${text}@example.org` })),
  bodyPosition('a language', '/v1/people', text => ({ language: text })),
  bodyPosition('a date', '/v1/people', text => ({ date_of_birth: text })),
  bodyPosition('a link', '/v1/people', text => values({ referrer: text, friends: [text] })),
  bodyPosition('an unknown field', '/v1/people', text => ({ [text]: text })),
  bodyPosition('a channel', '/v1/people', text => ({ consents: [{ consent_type_id: 1, channel: text, state: true }] })),
  bodyPosition('an operation', '/v1/people/batch', text => ({ operations: [{ op: text, external_id: 'ada' }] })),
  bodyPosition('an external identifier in a batch', '/v1/people/batch', text => ({
    operations: [{ op: 'patch', external_id: text, body: values({ [text]: text }) }],
  })),
  bodyPosition('an upsert', '/v1/people/upsert', text => ({ external_id: text, ...values({ [text]: text }) })),
  bodyPosition('a version in a batch', '/v1/people/batch', text => ({
    operations: [{ op: 'delete', external_id: 'ada', if_match: text }],
  })),
]

const cursors = ['people', 'stacks/orders'].flatMap(kind =>
  ['list', 'filter'].map(suffix =>
    bodyPosition(`a cursor of ${kind}/${suffix}`, `/v1/${kind}/${suffix}`, text => ({
      cursor_configuration: { after_id: text },
    })),
  ),
)
const pages = ['people/list', 'stacks/orders/filter'].flatMap(path => {
  const position = (name: string, bodyOf: (text: string) => unknown) =>
    bodyPosition(`${name} of ${path}`, `/v1/${path}`, bodyOf)
  return [
    position('a field', text => ({ fields: ['external_id', text] })),
    position('a key', text => ({ fields: [`attribute_values.${text}`] })),
    position('an include', text => ({ include: [text] })),
    position('a count', text => ({ count: text })),
    position('a next cursor', text => ({ cursor_configuration: { cursor: text } })),
  ]
})
const sorts = ['people/list', 'stacks/orders/filter'].flatMap(path => {
  const position = (name: string, bodyOf: (text: string) => unknown) =>
    bodyPosition(`${name} of ${path}`, `/v1/${path}`, bodyOf)
  const sort = { field: 'external_id' }
  return [
    position('a sort', text => ({ sort: { field: text } })),
    position('a sort by an attribute', text => ({ sort: { field: `attribute_values.${text}` } })),
    position('a direction of a sort', text => ({ sort: { ...sort, direction: text } })),
    position('a cursor of a sort', text => ({ sort, cursor_configuration: { cursor: text } })),
    position('a term in a cursor', text => ({ sort, cursor_configuration: { cursor: cursorOf(text) } })),
  ]
})
const cursorOf = (term: string) =>
  Buffer.from(JSON.stringify(['external_id', 'asc', term, '01936f3e-0a5c-7c3e-9d0a-5b6f3c1d2e4f'])).toString(
    'base64url',
  )
const related = ['target', 'attribute_key', 'direction', 'sorting_type'].map(field =>
  bodyPosition(`related by ${field}`, '/v1/people/ada/related', text => ({ target: 'people', [field]: text })),
)

const searches = [
  ...['people', 'stacks/visits'].map(kind =>
    bodyPosition(`the text of a search of ${kind}`, `/v1/${kind}/search`, text => ({ text })),
  ),
  bodyPosition('the text of a search of several owners', '/v1/search', text => ({
    text,
    owners: ['people', 'orders'],
  })),
  bodyPosition('an owner of a search', '/v1/search', text => ({ text: 'ada', owners: ['people', text] })),
  bodyPosition('a cursor of a search', '/v1/search', text => ({ text: 'ada', cursor: text })),
]

const definitions = [
  bodyPosition('a stack key', '/v1/schema/stacks', text => ({ key: text, kind: 'item' })),
  bodyPosition('a stack name', '/v1/schema/stacks', text => ({
    key: `k${Math.abs(hash(text))}`,
    kind: 'item',
    name: text,
  })),
  bodyPosition('the owner of an attribute', '/v1/schema/attributes', text => ({ key: 'x', owner: text, type: 'text' })),
  bodyPosition('a declared key', '/v1/schema/attributes', text => ({ key: text, owner: 'people', type: 'text' })),
  bodyPosition('a target stack', '/v1/schema/attributes', text => ({
    key: 'x',
    owner: 'people',
    type: 'stack',
    target_stack: text,
  })),
  bodyPosition('a description', '/v1/schema/attributes', text => ({
    key: `k${Math.abs(hash(text))}`,
    owner: 'orders',
    type: 'text',
    description: text,
  })),
  ...Object.entries({ enum: (text: string) => [text], pattern: String, minimum: String }).map(([rule, ruleOf]) =>
    bodyPosition(`the rule ${rule}`, '/v1/schema/attributes', text => ({
      key: `${rule}${Math.abs(hash(text))}`,
      owner: 'orders',
      type: rule === 'minimum' ? 'datetime' : 'text',
      [rule]: ruleOf(text),
    })),
  ),
  bodyPosition('a unique value', '/v1/stacks/orders', text => values({ code: text })),
  addressPosition('GET', text => `/v1/schema/attributes/1/violations?rule=${text}`),
  addressPosition('GET', text => `/v1/schema/attributes/1/violations?after_id=${text}`),
  addressPosition('GET', text => `/v1/schema/attributes/1/violations?pattern=${text}`),
  bodyPosition('a consent type', '/v1/schema/consent-types', text => ({
    key: `k${Math.abs(hash(text))}`,
    name: text,
    channels: [{ channel: 'sms' }],
  })),
]

const webhook = { url: 'https://receiver.invalid/', events: ['person.*'] }
const webhooks = [
  // The host is fixed: a text in its place could be the name of a machine.
  bodyPosition('the path of a URL', '/v1/webhooks', text => ({ ...webhook, url: `${webhook.url}${text}` })),
  bodyPosition('an event', '/v1/webhooks', text => ({ ...webhook, events: [text] })),
  bodyPosition('a stack of a webhook', '/v1/webhooks', text => ({ ...webhook, stacks: [text] })),
  bodyPosition('a field of a webhook', '/v1/webhooks', text => ({ ...webhook, keys: [`attribute_values.${text}`] })),
  bodyPosition('a description of a webhook', '/v1/webhooks', text => ({ ...webhook, description: text })),
  bodyPosition('the payload of a webhook', '/v1/webhooks', text => ({ ...webhook, payload: text })),
  addressPosition('GET', text => `/v1/webhooks/${text}`),
  addressPosition('GET', text => `/v1/webhooks/1/deliveries?status=${text}`),
]

const access = [
  bodyPosition('the name of a client', '/v1/clients', text => ({ name: text, scopes: ['people:read'] })),
  bodyPosition('a scope of a client', '/v1/clients', text => ({ name: 'x', scopes: [text] })),
  bodyPosition('the name of a token', '/v1/tokens', text => ({ name: text, scopes: ['people:read'], expires_in: 60 })),
  bodyPosition('the name of an account', '/v1/accounts', text => ({ name: text, role: null })),
  addressPosition('DELETE', text => `/v1/accounts/${text}`),
  bodyPosition('a time of statistics', '/v1/consents/statistics', text => ({ interval: 'day', from: text })),
  bodyPosition('an interval of statistics', '/v1/consents/statistics', text => ({ interval: text })),
  addressPosition('GET', text => `/v1/clients/${text}`),
  addressPosition('GET', text => `/v1/clients?before=${text}`),
]

const segments = [
  bodyPosition('the key of a segment', '/v1/segments', text => ({ key: text, filter: {} })),
  bodyPosition('the name of a segment', '/v1/segments', text => ({
    ...{ key: `k${Math.abs(hash(text))}`, filter: {} },
    ...{ name: text, description: text },
  })),
  bodyPosition('an operand of a segment', '/v1/segments', text => ({
    key: `k${Math.abs(hash(text))}`,
    filter: { first_name: text },
  })),
  bodyPosition('a key in a filter', '/v1/people/filter', text => ({ filter: { $segment: text } })),
  addressPosition('GET', text => `/v1/segments/${text}/people`),
  addressPosition('GET', text => `/v1/segments/in_rome/people?after_id=${text}`),
  addressPosition('GET', text => `/v1/changes?segment=${text}`),
]

/** Hashes a text, so that each text gives a valid definition key of its own. */
const hash = (text: string): number =>
  [...text].reduce((sum, character) => (sum * 31 + character.codePointAt(0)!) | 0, 7)

const headers = ['If-Match', 'Prefer', 'X-Request-Id', 'Content-Type', 'X-Forwarded-For'].map(
  (name): Position => ({
    name: `the header ${name}`,
    // The raw socket tests send the characters that an HTTP client rejects in a header.
    buildRequest: text => ({
      method: 'PATCH',
      path: '/v1/people/ada',
      body: '{"first_name":"Ada"}',
      headers: {
        [name]: [...text]
          .filter(character => character >= ' ' && character <= '~')
          .join('')
          .slice(0, 4_000),
      },
    }),
  }),
)

/** Every position of a request that takes a text from the client. */
export const positions: Position[] = [
  ...addresses,
  ...people,
  ...cursors,
  ...sorts,
  ...related,
  ...searches,
  ...pages,
  ...definitions,
  ...webhooks,
  ...access,
  ...segments,
  ...headers,
  ...Object.entries(filters).map(([name, filterOf]) =>
    bodyPosition(`${name} of a filter`, '/v1/people/filter', text => ({ filter: filterOf(text) })),
  ),
  bodyPosition('a field of a filter of records', '/v1/stacks/orders/filter', text => ({
    filter: { [`attribute_values.${text}`]: { $exists: true } },
  })),
]
