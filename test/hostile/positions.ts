import type { Ask } from './sender.ts'

/** Texts that mean something to some machine on the way, each with a mark by which it is found again. */
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

/** As it stands in a path or a query: percent-encoded, lone surrogates by the bytes that UTF-8 would give them. */
export function encoded(text: string): string {
  return [...text].map(character => (character.isWellFormed() ? encodeURIComponent(character) : '%ED%A0%80')).join('')
}

type Position = { where: string; ask(text: string): Ask }

const body = (where: string, path: string, bodyOf: (text: string) => unknown): Position => ({
  where,
  ask: text => ({ method: 'POST', path, body: JSON.stringify(bodyOf(text)) }),
})
const address = (method: string, pathOf: (text: string) => string): Position => ({
  where: `${method} ${pathOf('…')}`,
  ask: text => ({
    method,
    path: pathOf(encoded(text)),
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
  'a consent': text => ({ consents: { $some: { channel: text } } }),
  'a target': text => ({ 'attribute_values.referrer': text }),
  'a negation': text => ({ $not: { $and: [{ 'attribute_values.tags': text }, { state: text }] } }),
}

const addresses = [
  ...['GET', 'PUT', 'PATCH', 'DELETE'].flatMap(method => [
    address(method, text => `/v1/people/${text}`),
    address(method, text => `/v1/people/internal/${text}`),
    address(method, text => `/v1/stacks/orders/${text}`),
    address(method, text => `/v1/stacks/${text}/o1`),
    address(method, text => `/v1/stacks/orders/internal/${text}`),
  ]),
  ...['list', 'filter', 'batch', 'upsert', 'ada/related'].map(end =>
    address('POST', text => `/v1/stacks/${text}/${end}`),
  ),
  address('POST', text => `/v1/people/${text}/related`),
  address('GET', text => `/v1/schema/stacks/${text}`),
  address('GET', text => `/v1/schema/attributes/${text}`),
  address('PATCH', text => `/v1/schema/consent-types/${text}`),
  address('POST', text => `/v1/people?${text}=1`),
  address('POST', text => `/v1/people/list?cursor_configuration[after_id]=${text}`),
  {
    where: 'a query',
    ask: (text: string): Ask => ({
      method: 'POST',
      path: `/v1/people?attribute_values[${encoded(text)}]=${encoded(text)}`,
    }),
  },
  {
    where: 'a query of a field',
    ask: (text: string): Ask => ({ method: 'POST', path: `/v1/people?first_name=${encoded(text)}` }),
  },
]

const people = [
  body('an attribute key', '/v1/people', text => values({ [text]: 1 })),
  body('an attribute value', '/v1/people', text => values({ free: text })),
  body('a nested key', '/v1/people', text => values({ free: [{ [text]: { [text]: text } }] })),
  body('an indexed value', '/v1/people', text => values({ city: text, tags: [text] })),
  body('an external identifier', '/v1/people', text => ({ external_id: text })),
  body('a profile field', '/v1/people', text => ({ first_name: text, mobile_number: text })),
  body('an email', '/v1/people', text => ({ email: `${text}@example.org` })),
  body('a language', '/v1/people', text => ({ language: text })),
  body('a date', '/v1/people', text => ({ date_of_birth: text })),
  body('a link', '/v1/people', text => values({ referrer: text, friends: [text] })),
  body('an unknown field', '/v1/people', text => ({ [text]: text })),
  body('a channel', '/v1/people', text => ({ consents: [{ consent_type_id: 1, channel: text, state: true }] })),
  body('an operation', '/v1/people/batch', text => ({ operations: [{ op: text, external_id: 'ada' }] })),
  body('a name in a batch', '/v1/people/batch', text => ({
    operations: [{ op: 'patch', external_id: text, body: values({ [text]: text }) }],
  })),
  body('an upsert', '/v1/people/upsert', text => ({ external_id: text, ...values({ [text]: text }) })),
  body('a version in a batch', '/v1/people/batch', text => ({
    operations: [{ op: 'delete', external_id: 'ada', if_match: text }],
  })),
]

const cursors = ['people', 'stacks/orders'].flatMap(kind =>
  ['list', 'filter'].map(end =>
    body(`a cursor of ${kind}/${end}`, `/v1/${kind}/${end}`, text => ({ cursor_configuration: { after_id: text } })),
  ),
)
const related = ['target', 'attribute_key', 'direction', 'sorting_type'].map(field =>
  body(`related by ${field}`, '/v1/people/ada/related', text => ({ target: 'people', [field]: text })),
)

const definitions = [
  body('a stack key', '/v1/schema/stacks', text => ({ key: text, kind: 'item' })),
  body('a stack name', '/v1/schema/stacks', text => ({ key: `k${Math.abs(hash(text))}`, kind: 'item', name: text })),
  body('an attribute of', '/v1/schema/attributes', text => ({ key: 'x', owner: text, type: 'text' })),
  body('a declared key', '/v1/schema/attributes', text => ({ key: text, owner: 'people', type: 'text' })),
  body('a target stack', '/v1/schema/attributes', text => ({
    key: 'x',
    owner: 'people',
    type: 'stack',
    target_stack: text,
  })),
  body('a description', '/v1/schema/attributes', text => ({
    key: `k${Math.abs(hash(text))}`,
    owner: 'orders',
    type: 'text',
    description: text,
  })),
  body('a consent type', '/v1/schema/consent-types', text => ({
    key: `k${Math.abs(hash(text))}`,
    name: text,
    channels: [{ channel: 'sms' }],
  })),
]

/** Keys of definitions want letters, and each its own. */
const hash = (text: string): number =>
  [...text].reduce((sum, character) => (sum * 31 + character.codePointAt(0)!) | 0, 7)

const headers = ['If-Match', 'Prefer', 'X-Request-Id', 'Content-Type', 'X-Forwarded-For'].map(
  (name): Position => ({
    where: `the header ${name}`,
    // What cannot stand in a header at all is left to the tests of raw sockets.
    ask: text => ({
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

/** Every place of a request where a client's text can stand. */
export const positions: Position[] = [
  ...addresses,
  ...people,
  ...cursors,
  ...related,
  ...definitions,
  ...headers,
  ...Object.entries(filters).map(([name, filterOf]) =>
    body(`${name} of a filter`, '/v1/people/filter', text => ({ filter: filterOf(text) })),
  ),
  body('a field of a filter of records', '/v1/stacks/orders/filter', text => ({
    filter: { [`attribute_values.${text}`]: { $exists: true } },
  })),
]
