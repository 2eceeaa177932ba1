import type { AttributeType } from '../values/attribute-rules.ts'
import { plainColumns } from '../values/profile-fields.ts'
import { type Found, fits } from './answer.ts'
import { type Api, ApiRefusal } from './api.ts'

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

/** The definitions of an organization, shorter than the API returns them. With many attributes, an owner shows their number unless it is named. */
export async function describeSchema(api: Api, owner: string | undefined): Promise<Found> {
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
/** The most segments that are named beside attributes that are only counted. */
const maxKeys = 100

/** An attribute without what is usual. */
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

/** Three filters that this organization accepts. */
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
