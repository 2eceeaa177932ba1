import type { Person } from '@kith/client'
import { Fragment } from 'react'
import { useMessages } from '../app/language.tsx'
import { useScope } from '../app/session.tsx'
import { EditButton } from '../entity/edit-button.tsx'
import { EditForm } from '../entity/edit-form.tsx'
import type { Entity } from '../entity/entities.ts'
import { FieldValue } from '../entity/field-value.tsx'
import { attributeFields, storedValue, undeclaredField } from '../entity/fields.ts'
import { messages as entityMessages } from '../entity/messages.ts'
import { NewKey } from '../entity/new-key.tsx'
import { attributesOf, useSchema } from '../entity/schema.ts'
import { useEdit } from '../entity/use-edit.ts'
import { Badge, Facts, Section } from '../ui/page.tsx'
import { messages } from './messages.ts'
import styles from './person.module.css'

type AttributesSectionProps = {
  person: Person
  /** Without it, the section is read only. */
  onSaved?: (entity: Entity) => void
}

/** The attribute values of a person: declared ones by their types, all others as JSON. */
export function AttributesSection({ person, onSaved }: AttributesSectionProps) {
  const texts = useMessages(messages)
  const entityTexts = useMessages(entityMessages)
  const mayWrite = useScope('people:write') && onSaved !== undefined
  const entity = person as unknown as Entity
  const { declared, undeclared } = attributeFields(attributesOf(useSchema(), 'people'), entity.attribute_values)
  const edit = useEdit({ owner: 'people', id: person.id, entity, onSaved: onSaved ?? (() => {}) })
  const { state } = edit
  if (state)
    return (
      <Section title={texts.attributes}>
        <EditForm label={texts.attributes} edit={edit}>
          <NewKey
            isTaken={key => state.fields.some(field => field.key === key)}
            onAdd={key => edit.add(undeclaredField(key))}
          />
        </EditForm>
      </Section>
    )
  // Links stand in a section of their own.
  const shown = [...declared.filter(({ target }) => target === undefined), ...undeclared]
  return (
    <Section
      title={texts.attributes}
      actions={mayWrite && <EditButton edit={edit} fields={[...declared, ...undeclared]} name={texts.attributes} />}
    >
      {shown.length === 0 ? (
        <p className={styles.muted!}>{texts.noAttributes}</p>
      ) : (
        <Facts
          facts={shown.map(field => [
            field.label,
            <Fragment key={field.path}>
              <FieldValue field={field} value={storedValue(field, entity)} />{' '}
              {field.isUndeclared && <Badge>{entityTexts.undeclared}</Badge>}
            </Fragment>,
          ])}
        />
      )}
    </Section>
  )
}
