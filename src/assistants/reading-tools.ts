import type { AttributeType } from '../values/attribute-rules.ts'
import { channels } from '../values/channels.ts'
import { Type } from '../values/json-schema.ts'
import { plainColumns } from '../values/profile-fields.ts'
import { type Found, fits } from './answer.ts'
import { type Api, ApiRefusal } from './api.ts'
import { type Arguments, at, atEntity, externalId, object, owner, type Tool, text } from './tool.ts'

const { Optional } = Type
const integer = (minimum: number, description: string) => Type.Integer({ minimum, description })
const texts = (maxItems: number, description: string) =>
  Type.Array(Type.String(), { minItems: 1, maxItems, description })
const objects = (description: string) => Type.Array(object(description), { maxItems: 20 })

const fields = Optional(
  texts(50, 'What to show of each: first_name, email, created_at, attribute_values.city. Name no more than you need.'),
)
const size = Optional(Type.Integer({ minimum: 1, maximum: 100, description: 'The most items. Default: 20.' }))
const cursor = Optional(text('The next_cursor of the page before, with all else the same.'))
const filter = object('A filter in the grammar of describe_schema: {"attribute_values.city": "Rome"}. {} is all.')

const defaultSize = 20

/**
 * Without `fields`, an item has only its name for people, so that the answer is short and shows no unrequested values.
 */
const pageOf = ({
  owner: _,
  fields = ['external_id'],
  size = defaultSize,
  cursor,
  ...others
}: Arguments): Arguments => ({
  ...others,
  fields,
  labels: true,
  cursor_configuration: { size, ...(cursor && { cursor }) },
})

const found = (data: unknown, list: string, ...rest: string[]): Found => ({ data: data as Found['data'], list, rest })

type Page = { items: (Record<string, unknown> | null)[] }

/** A page of entities. If its items show no relationships, it leaves out the names of their targets. */
const pageFound = (page: unknown): Found => {
  const items = (page as Page).items.map(item => {
    const { relationship_labels: labels, ...rest } = item ?? {}
    return item && (Object.keys(labels ?? {}).length > 0 ? item : rest)
  })
  return found({ ...(page as Page), items }, 'items', 'next_cursor', 'has_more')
}

type Hit = { owner: string; entity: Record<string, unknown> }

/** An entity that a search found: its name, and the identifier to request it by. */
const hitOf = ({ owner, entity: { external_id, label, id, record_id } }: Hit) => ({
  owner,
  external_id,
  ...(external_id === null && { id: id ?? record_id }),
  label,
})

type Groups = { groups: { measures: unknown[] }[] }
type Decisions = { items: { reasons: object[] }[] }

/** Removes nulls. A reason has a member for each kind of evidence, and most are null. */
const withoutNulls = (reason: object) =>
  Object.fromEntries(Object.entries(reason).filter(([, value]) => value !== null))

export const readingTools: Tool[] = [
  {
    name: 'describe_schema',
    description:
      'Call this first. Returns the owners (people and stacks of records) with their attributes and relationships, the consent types, ' +
      'the segments, the grammar of filters, and three filters that are valid for this very organization.',
    input: { owner: Optional(text('Only this owner. For an organization with many.')) },
    run: (api, given) => describeSchema(api, given.owner),
  },
  {
    name: 'search',
    description:
      'Finds people and records by words: names, emails, phones, identifiers, searchable attributes. Typos are allowed. For conditions use filter.',
    input: {
      text: text('At most 8 words. All must be found.'),
      owners: Optional(texts(10, 'people and keys of stacks. Default: all, at most 10.')),
      ...{ size, cursor },
    },
    run: async (api, { owners = ['*'], size = defaultSize, ...given }) => {
      const body = { ...given, owners, size, labels: true }
      const page = (await api({ method: 'POST', path: '/v1/search', body })) as { items: Hit[] }
      return found({ ...page, items: page.items.map(hitOf) }, 'items', 'next_cursor', 'has_more')
    },
  },
  {
    name: 'get',
    description: 'Reads people or records by identifier. Null is one that does not exist.',
    input: {
      owner,
      external_ids: Optional(texts(20, 'External identifiers.')),
      ids: Optional(texts(20, 'Internal identifiers, in place of external_ids.')),
      fields,
      include: Optional(texts(10, 'Keys of relationships: the entities they lead to come along.')),
    },
    run: async (api, { owner, ...named }) =>
      pageFound(await api({ method: 'POST', ...at(owner, '/get'), body: { ...named, labels: true } })),
  },
  {
    name: 'filter',
    description:
      'Lists the people or records that pass a filter, in pages. Without fields, an item has external_id and label, its name.',
    input: {
      ...{ owner, filter, fields },
      sort: Optional(
        object('{"field": "last_name", "direction": "desc"}: a profile field, a time or an indexed attribute.'),
      ),
      ...{ size, cursor },
    },
    run: async (api, given) =>
      pageFound(await api({ method: 'POST', ...at(given.owner, '/filter'), body: pageOf(given) })),
  },
  {
    name: 'count',
    description: 'The exact number of people or records that pass a filter. Shows none of them.',
    input: { owner, filter },
    run: async (api, { owner, filter }) => {
      const aggregated = await api({ method: 'POST', ...at(owner, '/aggregate'), body: { filter } })
      const { groups, ...rest } = aggregated as Groups
      return { data: { count: groups[0]!.measures[0], ...rest } }
    },
  },
  {
    name: 'aggregate',
    description:
      'Groups people or records by up to two fields and measures each group. Numbers are exact. Without sort, groups are in the order of their values.',
    input: {
      owner,
      filter: Optional(filter),
      group_by: Optional(
        Type.Array(Type.Union([Type.String(), object('A time by day, week, month, quarter or year.')]), {
          maxItems: 2,
          description:
            'Fields, also of a target: "attribute_values.buyer.first_name". Or times: {"field": "created_at", "by": "month"}.',
        }),
      ),
      measures: Optional(
        objects(
          '{"op": "count"} or {"op": "sum", "field": "attribute_values.total"}: count, count_distinct, sum, avg, min, max, median, percentile (with p).',
        ),
      ),
      having: Optional(objects('A test that groups must pass: {"measure": 0, "$gte": 2}. Measures count from 0.')),
      sort: Optional(objects('{"measure": 0, "direction": "desc"} or {"group": 0}.')),
      size,
    },
    run: async (api, { owner, size: limit = defaultSize, ...given }) => {
      const data = await api({ method: 'POST', ...at(owner, '/aggregate'), body: { ...given, limit } })
      const isCut = (data as Groups).groups.length === limit
      return {
        ...found(data, 'groups'),
        ...(isCut && { note: `There may be more groups: size limits them to ${limit}.` }),
      }
    },
  },
  {
    name: 'related',
    description: 'Lists the people or records of one kind that are linked with an entity, in either direction.',
    input: {
      owner,
      external_id: externalId,
      target: text('The kind to list: `people`, or the key of a stack.'),
      attribute_key: Optional(text('Only links of this relationship.')),
      direction: Optional(Type.Enum(['outgoing', 'incoming', 'both'])),
      ...{ fields, size, cursor },
    },
    run: async (api, given) => {
      const { external_id: _, ...body } = pageOf(given)
      return pageFound(await api({ method: 'POST', ...atEntity(given, '/related'), body }))
    },
  },
  {
    name: 'history',
    description: 'The changes of one person or record, newest first: when, by whom, and the values before and after.',
    input: {
      owner,
      external_id: externalId,
      before_version: Optional(integer(1, 'Continue before this version.')),
      size,
    },
    run: async (api, given) => {
      const query = { limit: given.size ?? defaultSize, before_version: given.before_version }
      return found(await api({ method: 'GET', ...atEntity(given, '/history'), query }), 'items', 'has_more')
    },
  },
  {
    name: 'may_contact',
    description:
      'Whether people may be written to for a purpose on a channel, with the rules that decide. To list everyone who may, use filter with {"contactable": {"consent_type_id": 1, "channel": "email"}}.',
    input: {
      external_ids: texts(100, 'External identifiers of people.'),
      consent_type_id: integer(1, 'The purpose: the id of a consent type.'),
      channel: Type.Enum(channels),
    },
    run: async (api, body) => {
      const decided = (await api({ method: 'POST', path: '/v1/people/contactable', body })) as Decisions
      const items = decided.items.map(({ reasons, ...each }) => ({ ...each, reasons: reasons.map(withoutNulls) }))
      return found({ ...decided, items }, 'items')
    },
  },
  {
    name: 'changes',
    description:
      'The changes of the whole organization after a number, oldest first. `head` is the newest number: for the newest changes, ask after head − size. `last` is the next `after`.',
    input: {
      after: Optional(integer(0, 'Default: 0, the beginning.')),
      subject: Optional(texts(10, 'person, record, stack, attribute, …')),
      stack: Optional(texts(20, 'Only records of these stacks.')),
      operation: Optional(texts(10, 'create, update, delete, merge, …')),
      segment: Optional(texts(20, 'Who entered or left these segments.')),
      entity: Optional(text('Only changes of the entity with this identifier.')),
      size,
    },
    run: async (api, { size: limit = defaultSize, ...query }) =>
      found(await api({ method: 'GET', path: '/v1/changes', query: { ...query, limit } }), 'items', 'last'),
  },
]

type Stack = { key: string; kind: 'item' | 'event'; name: string }
type Attribute = {
  owner: string
  key: string
  description: string | null
  type: AttributeType
  cardinality: 'one' | 'many'
  target_stack: string | null
  indexed: boolean
  searchable: boolean
  required: boolean
  enum: unknown[] | null
  state: string
}
type ConsentType = { id: number; key: string; name: string; state: string; channels: { channel: string }[] }
type Schema = { stacks: Stack[]; attributes: Attribute[]; consent_types: ConsentType[] }

const grammar = [
  'Filters: {field: value} (all fields must match), {field: {operator: operand}}, {"$and": [..]}, {"$or": [..]}, {"$not": ..}, on people also {"$segment": key}.',
  'Operators: $eq $neq $in $nin; $lt $lte $gt $gte; $contains $starts_with $ends_with (text, any case); $exists (true or false).',
  'Fields: first_name and the other fields of people; external_id, created_at, updated_at, state; attribute_values.KEY.',
  'A relationship: {"attribute_values.KEY": "external_id of the target"}, or $some, $none, $every with a filter on the target.',
  'Those who link here: {"incoming.OWNER.KEY": {"$count": {"$gte": 2}}}; also $some, $none, $sum, $avg, $min, $max, and "$where" beside a measure.',
  'In place of a date or time: {"$ago": "P30D"}, {"$from_now": "P7D"}, {"$today": "start"}.',
  'Who may be written to, exactly: {"contactable": {"consent_type_id": 1, "channel": "email"}}.',
].join('\n')

/**
 * The definitions of an organization, in a shorter form than the API's. If there are many attributes, only their number
 * is shown, except for the requested owner.
 */
async function describeSchema(api: Api, owner: string | undefined): Promise<Found> {
  const schema = (await api({ method: 'GET', path: '/v1/schema' })) as Schema
  const { items: segments } = (await api({ method: 'GET', path: '/v1/segments' })) as {
    items: { key: string; name: string }[]
  }
  const attributes = schema.attributes.filter(({ state }) => state === 'active')
  const people = { key: 'people', kind: 'people', name: 'People', fields: plainColumns }
  const owners = [people, ...schema.stacks].filter(({ key }) => owner === undefined || key === owner)
  if (owners.length === 0) throw unknownOwner
  const shown = owners.map(({ key, kind, name, ...each }) => ({
    ...{ owner: key, kind, name, ...('fields' in each && { fields: each.fields }) },
    attributes: attributes.filter(attribute => attribute.owner === key).map(shortOf),
  }))
  const consent_types = schema.consent_types
    .filter(({ state }) => state === 'active')
    .map(({ id, key, name, channels }) => ({ id, key, name, channels: channels.map(({ channel }) => channel) }))
  const filters = examplesFor(attributes, consent_types)
  const named = segments.map(({ key, name }) => ({ key, name }))
  const data = { owners: shown, consent_types, segments: named, filters }
  if (fits(data)) return { data, note: grammar }
  if (owner !== undefined) return { data: { ...shown[0], filters }, list: 'attributes', note: grammar }
  const counted = shown.map(({ attributes, ...each }) => ({ ...each, attributes: attributes.length }))
  const note = `${grammar}\nThe attributes of each owner are only counted: call describe_schema with owner to see them.`
  return {
    data: { ...data, owners: counted, segments: named.slice(0, maxKeys).map(({ key }) => key) },
    list: 'owners',
    note,
  }
}

const unknownOwner = new ApiRefusal({
  status: 404,
  error: 'not_found',
  message: 'There is no such owner.',
  details: [{ path: '/owner', message: 'is neither people nor the key of a stack' }],
})

const maxEnumValues = 20
/** The maximum number of segments that are named if the attributes are only counted. */
const maxKeys = 100

/** An attribute without members that have their usual value. */
const shortOf = ({ key, type, target_stack: target, description, ...more }: Attribute) => ({
  ...{ key, type },
  ...(description && { description: description.slice(0, 200) }),
  ...(more.cardinality === 'many' && { many: true }),
  ...(target && { target }),
  ...(more.indexed && { indexed: true }),
  ...(more.searchable && { searchable: true }),
  ...(more.required && { required: true }),
  ...(more.enum && { enum: more.enum.slice(0, maxEnumValues) }),
})

type Example = { owner: string; meaning: string; filter: object }
type Purpose = { id: number; name: string; channels: string[] }

const ofPeople = (meaning: string, filter: object): Example => ({ owner: 'people', meaning, filter })

/** Returns three filters that are valid for this organization. */
function examplesFor(attributes: Attribute[], [purpose]: Purpose[]): Example[] {
  const link = attributes.find(({ owner, type }) => owner !== 'people' && type === 'person')
  const plain = attributes.find(({ owner }) => owner === 'people') ?? attributes[0]
  const repeated = link && { [`incoming.${link.owner}.${link.key}`]: { $count: { $gte: 2 } } }
  const contactable = purpose && { consent_type_id: purpose.id, channel: purpose.channels[0] }
  const condition = plain && { [`attribute_values.${plain.key}`]: conditionOn(plain) }
  return [
    repeated
      ? ofPeople(`at least two ${link.owner} lead to the person by ${link.key}`, repeated)
      : ofPeople('created in the last 30 days', { created_at: { $gte: { $ago: 'P30D' } } }),
    contactable
      ? ofPeople(`may be written to for ${purpose.name}`, { contactable })
      : ofPeople('have an email address', { email: { $exists: true } }),
    condition
      ? { ...ofPeople(`a condition on ${plain.key}`, condition), owner: plain.owner }
      : ofPeople('the first name begins with A', { first_name: { $starts_with: 'A' } }),
  ]
}

function conditionOn({ type }: Attribute): object {
  if (type === 'text') return { $contains: 'a' }
  if (type === 'number') return { $gte: 1 }
  if (type === 'date' || type === 'datetime') return { $gte: { $ago: 'P1Y' } }
  return { $exists: true }
}
