import pg from 'pg'
import { readScopes } from '../changes/selection.ts'
import { datePattern, timePattern } from '../db/time-text.ts'
import {
  type Attribute,
  type Definitions,
  isRelationship,
  peopleKey,
  peopleStackId,
  type Role,
  readScopeOf,
} from '../organizations/definitions.ts'
import { allFields, type FieldAccess, mayRead } from '../route/field-rights.ts'
import { parseScopes, type Scope } from '../route/scopes.ts'
import type { AttributeType } from '../values/attribute-rules.ts'
import { channels, channelTable } from '../values/channels.ts'
import {
  addressFields,
  attributePrefix,
  phoneMember,
  profileFlags,
  profileTexts,
  readTexts,
  textFields,
} from '../values/profile-fields.ts'

// A value that is older than the declaration of its attribute may have any type. A value of another type becomes null.
// No expression here raises an error, so no value can fail a query, and no message shows a value.

/** A text as a date. */
const dateOf = (text: string): string => `case when ${text} ~ '${datePattern}' then ${text}::date end`

/**
 * Converts a text m.t to a moment, to the microsecond. A cast would refuse some offsets and fractions that kith
 * accepts.
 */
const momentOf = `case when left(m.t, 10) ~ '${datePattern}' and substr(m.t, 11) ~ '${timePattern}' then
    (left(m.t, 10)::date + substr(m.t, 12, 8)::time
      + make_interval(secs => ('0' || coalesce(substring(m.t from '[.][0-9]{1,6}'), ''))::float8)
      - case when right(m.t, 1) in ('Z', 'z') then interval '0' else make_interval(
          hours => left(right(m.t, 6), 3)::integer, mins => (left(right(m.t, 6), 1) || right(m.t, 2))::integer
        ) end) at time zone 'UTC' end`

const fromText = (value: string, result: string) => `(select ${result} from (select ${value} as t offset 0) m)`

const whenTyped = (value: string, type: string, result: string) =>
  `case when jsonb_typeof(${value}) = '${type}' then ${result} end`

const readers: Record<Exclude<AttributeType, 'person' | 'stack'>, (value: string) => string> = {
  text: value => whenTyped(value, 'string', `${value} #>> '{}'`),
  number: value => whenTyped(value, 'number', `${value}::numeric`),
  boolean: value => whenTyped(value, 'boolean', `${value}::boolean`),
  date: value => fromText(`${value} #>> '{}'`, dateOf('m.t')),
  datetime: value => fromText(`${value} #>> '{}'`, momentOf),
  json: value => `nullif(${value}, 'null'::jsonb)`,
}

/** A JSON value as a value of the type of its attribute. */
const typedValue = (value: string, type: AttributeType): string => readers[type as keyof typeof readers](value)

/**
 * Converts a JSON array to an array of the type. A single value, stored before the attribute took lists, becomes a list
 * of one.
 */
const typedList = (value: string, type: AttributeType): string =>
  `(select array(
    select ${typedValue('x.value', type)}
    from jsonb_array_elements(case when jsonb_typeof(v.list) = 'array' then v.list else jsonb_build_array(v.list) end)
      with ordinality as x(value, n) order by x.n
  ) from (select ${value} as list offset 0) v where jsonb_typeof(v.list) <> 'null')`

/** A view: its name and its query. */
export type View = { name: string; query: string }

type Column = { name: string; value: string }

/** The maximum number of attributes of a view. PostgreSQL allows 1,600 columns. */
const maxAttributes = 1_500

const ownViews = ['consents', 'changes']

/**
 * The scopes that a role of kith opens, and the fields of an owner. Undefined fields mean all, and null means that the
 * owner is closed.
 */
type Opened = { has(scope: Scope): boolean; accessTo(owner: string): FieldAccess | undefined | null }

function openedBy(role: Role | undefined): Opened {
  if (!role) return { has: () => true, accessTo: () => undefined }
  const scopes = parseScopes(role.scope)
  const { fields } = role
  return {
    has: scope => scopes.has(scope),
    accessTo: owner => {
      if (fields === null) return undefined
      const names = Object.hasOwn(fields, owner) ? fields[owner] : undefined
      if (!names) return null
      return names.read.includes(allFields) ? undefined : { read: new Set(names.read), write: new Set() }
    },
  }
}

/**
 * The views of an organization: people, each stack, the consents and the change log. A closed field has no column, and
 * a closed owner has no view. Without a role, everything is open.
 */
export function viewsOf(definitions: Definitions, role: Role | undefined): View[] {
  const { organization_id, stacks } = definitions
  const opened = openedBy(role)
  const owners = [{ id: peopleStackId, key: peopleKey }, ...stacks].flatMap(({ id, key }): OpenOwner[] => {
    const access = opened.accessTo(key)
    return access === null || !opened.has(readScopeOf(id)) ? [] : [{ id, key, access }]
  })
  const views = owners.map(owner => ({
    name: viewName(owner.key),
    query: entitiesView(definitions, owner),
  }))
  const people = owners.find(({ id }) => id === peopleStackId)
  if (people && mayRead(people.access, 'consents')) {
    const seesAddresses = addressFields.every(field => mayRead(people.access, field))
    views.push({ name: 'consents', query: consentsView(organization_id, seesAddresses) })
  }
  if (opened.has('changes:read'))
    views.push({
      name: 'changes',
      query: changesView(organization_id, owners, scope => role?.fields == null && opened.has(scope)),
    })
  return views
}

/** The name of a stack's view. It is the path of the stack if another view has the key as its name. */
const viewName = (key: string) => (ownViews.includes(key) ? `stacks.${key}` : key)

const personColumns = ['id', 'external_id', ...readTexts, ...profileFlags]
const recordColumns = ['id', 'record_id', 'external_id']
const lastColumns = ['state', 'version', 'created_at', 'updated_at']

/** The columns of a view of entities e that are no attributes, by name. */
const ownColumns: Readonly<Record<string, string>> = {
  ...Object.fromEntries([...profileTexts, ...profileFlags].map(name => [name, `e.${name}`])),
  ...Object.fromEntries(
    profileTexts.filter(name => textFields[name].type === 'date').map(name => [name, dateOf(`e.${name}`)]),
  ),
  [phoneMember]: 'e.mobile_key',
  id: 'e.id',
  record_id: `left(replace(e.id::text, '-', ''), 24)`,
  external_id: 'e.external_id',
  state: `case when e.active then 'active' else 'placeholder' end`,
  version: 'e.version',
  created_at: 'e.created_at',
  updated_at: 'e.updated_at',
}

function entitiesView(definitions: Definitions, { id, access }: OpenOwner): string {
  const { organization_id, declared } = definitions
  const own = [...(id === peopleStackId ? personColumns : recordColumns), ...lastColumns]
  const columns: Column[] = own.filter(name => mayRead(access, name)).map(name => ({ name, value: ownColumns[name]! }))
  const attributes = [...(declared.get(id)?.values() ?? [])]
    .filter(({ key }) => mayRead(access, `attribute_values.${key}`))
    .slice(0, maxAttributes)
  const taken = new Set([...own, 'attribute_values'])
  for (const attribute of attributes)
    columns.push({
      name: taken.has(attribute.key) ? `attribute_values.${attribute.key}` : attribute.key,
      value: attributeValue(organization_id, attribute),
    })
  if (mayRead(access, 'attribute_values')) columns.push({ name: 'attribute_values', value: 'e.attributes' })
  return `select ${columns.map(({ name, value }) => `${value} as ${pg.escapeIdentifier(name)}`).join(',\n  ')}
from public.entities e where e.organization_id = ${organization_id} and e.stack_id = ${id}`
}

function attributeValue(organization_id: number, attribute: Attribute): string {
  if (isRelationship(attribute)) return targetsOf(organization_id, attribute.id)
  const value = `(e.attributes -> ${pg.escapeLiteral(attribute.key)})`
  const isList = attribute.cardinality === 'many' && attribute.type !== 'json'
  return isList ? typedList(value, attribute.type) : typedValue(value, attribute.type)
}

/**
 * The internal identifiers of the targets of an entity e, in the order of the links. Deleted targets are left out, as
 * in reads.
 */
const targetsOf = (organization_id: number, attribute_id: number) =>
  `array(
    select l.target_id from public.links l
    where l.organization_id = ${organization_id} and l.source_id = e.id and l.attribute_id = ${attribute_id} and exists (
      select from public.entities t
      where t.organization_id = ${organization_id} and t.stack_id = l.target_stack_id and t.id = l.target_id
    ) order by l.position
  )`

/** An owner that the views show, with its readable fields. Undefined means all. */
type OpenOwner = { id: number; key: string; access: FieldAccess | undefined }

/**
 * The consents of each person as reads show them. With `seesAddresses`, they include whether a refusal for the address
 * overrides a grant.
 */
function consentsView(organization_id: number, seesAddresses: boolean): string {
  const isRefused = channels
    .map(
      channel => `when ${pg.escapeLiteral(channel)} then exists (
      select from public.address_answers w where w.organization_id = ${organization_id} and w.channel = c.channel
        and w.address = e.${channelTable[channel].key} and w.consent_type_id = t.id and not w.state)`,
    )
    .join(' ')
  const state = `coalesce(a.answer -> 'state' = 'true'::jsonb, t.mandatory or t.default_state)`
  return `select e.id as person_id, e.external_id, t.id as consent_type_id, t.key as consent_type, c.channel,
  ${state} as state,
  case when t.mandatory then 'mandatory' when a.answer is null then 'default' else 'answer' end as source,
  ${fromText(`a.answer ->> 'answered_at'`, momentOf)} as answered_at,
  coalesce(a.answer -> 'undated' = 'true'::jsonb, false) as undated,
  coalesce(a.answer -> 'pending' = 'true'::jsonb, false) as pending,
  a.answer ->> 'method' as method${
    seesAddresses ? `,\n  ${state} and not t.mandatory and case c.channel ${isRefused} end as address_refused` : ''
  }
from public.entities e
  join public.consent_types t on t.organization_id = ${organization_id} and t.state = 'active'
  cross join lateral jsonb_to_recordset(t.channels) as c(channel text)
  cross join lateral (select case when not t.mandatory then e.answers -> concat(t.id, ':', c.channel) end as answer) a
where e.organization_id = ${organization_id} and e.stack_id = ${peopleStackId}`
}

const closable = [...readTexts, ...profileFlags, 'consents']
const list = (names: readonly string[]) => `array[${names.map(name => pg.escapeLiteral(name)).join(', ')}]::text[]`

const openKeys = ({ read }: FieldAccess) =>
  [...read].flatMap(name => (name.startsWith(attributePrefix) ? [name.slice(attributePrefix.length)] : []))

/** The values of a side of a change c of an owner, without closed fields. */
function sideOf(side: 'before' | 'after', access: FieldAccess): string {
  const closed = closable.filter(name => !mayRead(access, name))
  if (mayRead(access, 'attribute_values')) return `c.${side} - ${list(closed)}`
  return `(c.${side} - ${list([...closed, 'attribute_values'])}) || coalesce((
      select jsonb_build_object('attribute_values', jsonb_object_agg(j.key, j.value))
      from jsonb_each(case when jsonb_typeof(c.${side} -> 'attribute_values') = 'object' then c.${side} -> 'attribute_values' end) j
      where j.key = any(${list(openKeys(access))}) having count(*) > 0
    ), '{}')`
}

/** The links of a change c by the key of the attribute, for readable attributes. */
function linksOf(organization_id: number, access: FieldAccess | undefined): string {
  const isOpen = mayRead(access, 'attribute_values') ? '' : ` and a.key = any(${list(openKeys(access!))})`
  return `(select jsonb_object_agg(a.key, j.value)
      from jsonb_each(case when jsonb_typeof(c.links) = 'object' then c.links end) j
        join public.attributes a on a.organization_id = ${organization_id} and a.id::text = j.key${isOpen})`
}

/** A column of a change c: the whole column for an open owner, and the readable part for any other. */
function shownOf(owners: readonly OpenOwner[], whole: string, shown: (access: FieldAccess) => string): string {
  const parts = owners.flatMap(({ id, access }) => (access ? [`when ${id} then ${shown(access)}`] : []))
  return parts.length === 0 ? whole : `case c.stack_id ${parts.join('\n    ')} else ${whole} end`
}

/**
 * The changes of some owners, and those of the definitions whose scope is readable. Changes of an entity whose erasure
 * takes several transactions have no values from the first transaction on.
 */
function changesView(
  organization_id: number,
  owners: readonly OpenOwner[],
  readsDefinitions: (scope: Scope) => boolean,
): string {
  const { person, record, ...others } = readScopes
  const subjects = Object.entries(others).flatMap(([subject, scope]) => (readsDefinitions(scope) ? [subject] : []))
  const stacks = `array[${owners.map(({ id }) => id).join(', ')}]::integer[]`
  const isErasing = `c.entity_id = any(array(
    select x.entity_id from public.erasures x where x.organization_id = ${organization_id} and x.completed_at is null
  ))`
  return `select c.sequence, c.at,
  case when c.subject <> 'entity' then c.subject when c.stack_id = ${peopleStackId} then 'person' else 'record' end as subject,
  (select s.key from public.stacks s where s.organization_id = ${organization_id} and s.id = c.stack_id) as stack_key,
  c.entity_id, c.definition_id, c.operation, c.version,
  case when (${isErasing}) is not true then ${shownOf(owners, 'c.before', access => sideOf('before', access))} end as before,
  case when ${isErasing} then '{}'::jsonb else ${shownOf(owners, 'c.after', access => sideOf('after', access))} end as after,
  case when (${isErasing}) is not true then ${shownOf(owners, linksOf(organization_id, undefined), access => linksOf(organization_id, access))} end as links,
  c.merge_id, c.actor, c.request_id
from public.changes c
where c.organization_id = ${organization_id}
  and case when c.subject = 'entity' then c.stack_id = any(${stacks}) else c.subject = any(${list(subjects)}) end`
}
