import { type Person, profileFields } from '@kith/client'
import { useFormats, useMessages } from '../app/language.tsx'
import { useScope } from '../app/session.tsx'
import { EditButton } from '../entity/edit-button.tsx'
import { EditForm } from '../entity/edit-form.tsx'
import type { Entity } from '../entity/entities.ts'
import { FieldValue } from '../entity/field-value.tsx'
import { type Field, plainFields, profileField, storedValue } from '../entity/fields.ts'
import { type EntityTexts, messages as entityMessages } from '../entity/messages.ts'
import { useEdit } from '../entity/use-edit.ts'
import { Facts, Section } from '../ui/page.tsx'
import { messages } from './messages.ts'

const fieldsOf = ({ fields }: EntityTexts): Field[] => [
  ...plainFields.map(name => profileField(name, fields[name], profileFields[name].type)),
  profileField('external_id', fields.external_id),
]

type ProfileSectionProps = {
  person: Person
  /** Without it, the section is read only. */
  onSaved?: (entity: Entity) => void
}

/** The fields of a person. */
export function ProfileSection({ person, onSaved }: ProfileSectionProps) {
  const texts = useMessages(messages)
  const entityTexts = useMessages(entityMessages)
  const formats = useFormats()
  const mayWrite = useScope('people:write') && onSaved !== undefined
  const entity = person as unknown as Entity
  const fields = fieldsOf(entityTexts)
  const edit = useEdit({ owner: 'people', id: person.id, entity, onSaved: onSaved ?? (() => {}) })
  if (edit.state)
    return (
      <Section title={texts.profile}>
        <EditForm label={texts.profile} edit={edit} />
      </Section>
    )
  const shown = (field: Field) => <FieldValue field={field} value={storedValue(field, entity)} />
  return (
    <Section
      title={texts.profile}
      actions={mayWrite && <EditButton edit={edit} fields={fields} name={texts.profile} />}
    >
      <Facts
        facts={[
          ...fields.map(field => [field.label, shown(field)] as const),
          [texts.internalId, <code key="id">{person.id}</code>],
          [texts.created, <time key="created">{formats.dateTime(person.created_at)}</time>],
        ]}
      />
    </Section>
  )
}
