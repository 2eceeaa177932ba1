import pg from 'pg'
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
import {
  addressFields,
  phoneMember,
  profileFlags,
  profileTexts,
  readTexts,
  textFields,
} from '../values/profile-fields.ts'
import { changesView, consentsView, type OpenOwner } from './log-views.ts'
import { dateOf, typedList, typedValue } from './stored-values.ts'

/** A view: its name, and the query that it is. */
export type View = { name: string; query: string }

type Column = { name: string; value: string }

/** PostgreSQL allows 1,600 columns of a view. */
const maxAttributes = 1_500

const ownViews = ['consents', 'changes']

/** The scopes that a role of kith opens, and the fields of an owner. Undefined fields: all. Null: the owner is closed. */
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
 * The views of an organization: one of people and one of each stack, the consents and the change log. A field that the role closes has no
 * column, and an owner that it closes no view. Without a role, all is open.
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

/** A stack whose key is the name of another view has its path as the name. */
const viewName = (key: string) => (ownViews.includes(key) ? `stacks.${key}` : key)

const personColumns = ['id', 'external_id', ...readTexts, ...profileFlags]
const recordColumns = ['id', 'record_id', 'external_id']
const lastColumns = ['state', 'version', 'created_at', 'updated_at']

/** The columns that a view of entities e has besides those of attributes, by name. */
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

/** The internal identifiers of the targets of an entity e, in the order of the links. A deleted target is hidden, as reads do. */
const targetsOf = (organization_id: number, attribute_id: number) =>
  `array(
    select l.target_id from public.links l
    where l.organization_id = ${organization_id} and l.source_id = e.id and l.attribute_id = ${attribute_id} and exists (
      select from public.entities t
      where t.organization_id = ${organization_id} and t.stack_id = l.target_stack_id and t.id = l.target_id
    ) order by l.position
  )`
