import type { Person } from '@kith/client'
import { Fragment, type ReactNode } from 'react'
import { mayUse } from '../app/field-rights.ts'
import { useFormats, useMessages } from '../app/language.tsx'
import { useScope } from '../app/session.tsx'
import { KnownPeople } from '../duplicates/known-people.tsx'
import { EditButton, EditForm, NewKey } from '../entity/edit-form.tsx'
import { type Entity, idOf, scopesOf } from '../entity/entities.ts'
import {
  attributeFields,
  contactIn,
  draftOf,
  type Field,
  nameOfField,
  personField,
  plainFields,
  storedValue,
  undeclaredField,
} from '../entity/fields.ts'
import { type EntityTexts, messages as entityMessages } from '../entity/messages.ts'
import { attributesOf, useDefinitions } from '../entity/schema.ts'
import { type Edit, useEdit } from '../entity/use-edit.ts'
import { FieldValue } from '../entity/value.tsx'
import { Badge, Facts, Section } from '../ui/page.tsx'
import { messages } from './messages.ts'

const profileFields = ({ fields }: EntityTexts): Field[] =>
  [...plainFields, 'external_id' as const].map(name => personField(name, fields))

type EntityValuesProps = {
  owner: string
  entity: Entity
  /** Without this handler, the values are read only. */
  onSaved?: ((entity: Entity) => void) | undefined
}

/** The values of a person or record: declared values by their types, all others as JSON. */
export function EntityValues(props: EntityValuesProps) {
  const { owner, entity } = props
  const texts = useMessages(messages)
  const entityTexts = useMessages(entityMessages)
  const formats = useFormats()
  const { definitions } = useDefinitions()
  const { declared, undeclared } = attributeFields(attributesOf(definitions, owner), entity.attribute_values)
  const values = [...declared, ...undeclared]
  const facts: [string, ReactNode][] = [
    [texts.internalId, <code key="id">{idOf(entity)}</code>],
    [texts.created, <time key="created">{formats.dateTime(entity.created_at)}</time>],
  ]
  if (owner !== 'people') {
    const identifier = personField('external_id', entityTexts.fields)
    return <ValuesSection {...props} title={texts.values} fields={[identifier, ...values]} facts={facts} />
  }
  return (
    <>
      <ValuesSection
        {...props}
        title={texts.profile}
        fields={profileFields(entityTexts).filter(({ key }) => mayUse('read', owner, key))}
        facts={facts}
        isFixed
      />
      <ValuesSection {...props} title={texts.attributes} fields={values} />
    </>
  )
}

/** The number in E.164, or a note that the stored value is no phone number. */
function InternationalNumber({ person: { mobile_number, mobile_e164 } }: { person: Partial<Person> }) {
  const texts = useMessages(entityMessages)
  if (mobile_e164) return mobile_e164 !== mobile_number && <code>{mobile_e164}</code>
  return mobile_number && mobile_e164 === null && <Badge>{texts.noPhone}</Badge>
}

type ValuesSectionProps = EntityValuesProps & {
  title: string
  fields: readonly Field[]
  facts?: [string, ReactNode][]
  /** Whether new keys are not allowed. */
  isFixed?: boolean
}

/** Warns of other people with the email or phone that is typed here, unless the person has it already. */
function ChangedContact({ edit, id }: { edit: Edit; id: string }) {
  const { state } = edit
  if (!state) return null
  const { base, fields } = state
  const changed = contactIn(fields, edit.draft)
  const stored = contactIn(fields, field => draftOf(field, storedValue(field, base)))
  const isSamePhone = changed.prefix === stored.prefix && changed.number === stored.number
  return (
    <KnownPeople
      email={changed.email === stored.email ? '' : changed.email}
      prefix={isSamePhone ? '' : changed.prefix}
      number={isSamePhone ? '' : changed.number}
      without={id}
    />
  )
}

function ValuesSection({ owner, entity, onSaved, title, fields, facts = [], isFixed }: ValuesSectionProps) {
  const texts = useMessages(messages)
  const entityTexts = useMessages(entityMessages)
  const written = fields.filter(field => mayUse('write', owner, nameOfField(field)))
  // An edit keeps its initial fields, so it waits for the declared ones.
  const { isLoading } = useDefinitions()
  const mayAdd = !isFixed && mayUse('write', owner, 'attribute_values')
  const canEdit = onSaved !== undefined && (written.length > 0 || mayAdd) && !isLoading
  const mayWrite = useScope(scopesOf(owner).write) && canEdit
  const edit = useEdit({ owner, entity, onSaved })
  const { state } = edit
  if (state)
    return (
      <Section title={title}>
        <EditForm label={title} edit={edit}>
          {owner === 'people' && <ChangedContact edit={edit} id={idOf(entity)} />}
          {mayAdd && (
            <NewKey
              isTaken={key => state.fields.some(field => field.key === key)}
              onAdd={key => edit.add(undeclaredField(key))}
            />
          )}
        </EditForm>
      </Section>
    )
  // Links have their own section.
  const shown = fields.filter(({ target }) => target === undefined)
  if (shown.length + facts.length === 0 && !mayUse('read', owner, 'attribute_values')) return null
  return (
    <Section title={title} actions={mayWrite && <EditButton edit={edit} fields={written} name={title} />}>
      {shown.length + facts.length === 0 ? (
        <p className="muted">{texts.noAttributes}</p>
      ) : (
        <Facts
          facts={[
            ...shown.map(
              field =>
                [
                  field.label,
                  <Fragment key={field.path}>
                    <FieldValue field={field} value={storedValue(field, entity)} />{' '}
                    {field.path === '/mobile_number' && <InternationalNumber person={entity as Person} />}
                    {field.isUndeclared && <Badge>{entityTexts.undeclared}</Badge>}
                  </Fragment>,
                ] as const,
            ),
            ...facts,
          ]}
        />
      )}
    </Section>
  )
}
