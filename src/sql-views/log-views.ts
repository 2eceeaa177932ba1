import pg from 'pg'
import { readScopes } from '../changes/selection.ts'
import { peopleStackId } from '../organizations/definitions.ts'
import { type FieldAccess, mayRead } from '../route/field-rights.ts'
import type { Scope } from '../route/scopes.ts'
import { channels, channelTable } from '../values/channels.ts'
import { attributePrefix, profileFlags, readTexts } from '../values/profile-fields.ts'
import { momentOfText } from './stored-values.ts'

/** An owner that the views show, with the fields that may be read. Undefined: all. */
export type OpenOwner = { id: number; key: string; access: FieldAccess | undefined }

/** The consents of each person as reads show them, and with `seesAddresses` whether a refusal of the address takes a grant away. */
export function consentsView(organization_id: number, seesAddresses: boolean): string {
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
  ${momentOfText(`a.answer ->> 'answered_at'`)} as answered_at,
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

/** The values of a side of a change c of an owner, without those that may not be read. */
function sideOf(side: 'before' | 'after', access: FieldAccess): string {
  const closed = closable.filter(name => !mayRead(access, name))
  if (mayRead(access, 'attribute_values')) return `c.${side} - ${list(closed)}`
  return `(c.${side} - ${list([...closed, 'attribute_values'])}) || coalesce((
      select jsonb_build_object('attribute_values', jsonb_object_agg(j.key, j.value))
      from jsonb_each(case when jsonb_typeof(c.${side} -> 'attribute_values') = 'object' then c.${side} -> 'attribute_values' end) j
      where j.key = any(${list(openKeys(access))}) having count(*) > 0
    ), '{}')`
}

/** The links of a change c by the key of the attribute, of the attributes that may be read. */
function linksOf(organization_id: number, access: FieldAccess | undefined): string {
  const isOpen = mayRead(access, 'attribute_values') ? '' : ` and a.key = any(${list(openKeys(access!))})`
  return `(select jsonb_object_agg(a.key, j.value)
      from jsonb_each(case when jsonb_typeof(c.links) = 'object' then c.links end) j
        join public.attributes a on a.organization_id = ${organization_id} and a.id::text = j.key${isOpen})`
}

/** A column of a change c: of a whole owner, or of one that may not be read whole. */
function shownOf(owners: readonly OpenOwner[], whole: string, shown: (access: FieldAccess) => string): string {
  const parts = owners.flatMap(({ id, access }) => (access ? [`when ${id} then ${shown(access)}`] : []))
  return parts.length === 0 ? whole : `case c.stack_id ${parts.join('\n    ')} else ${whole} end`
}

/**
 * The changes of some owners and of the definitions whose scope is read. Those of an entity whose erasure goes on in several
 * transactions are shown without values from the first one on.
 */
export function changesView(
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
