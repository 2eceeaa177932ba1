import type { Person } from '@kith/client'
import { useState } from 'react'
import { useFormats, useMessages } from '../app/language.tsx'
import { useScope } from '../app/session.tsx'
import { EditForm } from '../entity/edit-form.tsx'
import type { Entity } from '../entity/entities.ts'
import { attributeField, type Field, storedValue, undeclaredField } from '../entity/fields.ts'
import { messages as entityMessages } from '../entity/messages.ts'
import { attributesOf, isRelationship, useSchema } from '../entity/schema.ts'
import { useEdit } from '../entity/use-edit.ts'
import { Value } from '../entity/value.tsx'
import { Button } from '../ui/button.tsx'
import { TextField } from '../ui/field.tsx'
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
  const [newKeys, setNewKeys] = useState<string[]>([])
  const fields = useFields(entity, newKeys)
  const edit = useEdit({
    owner: 'people',
    id: person.id,
    entity,
    fields: fields.all,
    onSaved: saved => {
      setNewKeys([])
      onSaved?.(saved)
    },
  })
  if (edit.isEditing)
    return (
      <Section title={texts.attributes}>
        <EditForm label={texts.attributes} edit={edit} fields={fields.all}>
          <NewKey taken={fields.all} onAdd={key => setNewKeys([...newKeys, key])} />
        </EditForm>
      </Section>
    )
  return (
    <Section
      title={texts.attributes}
      actions={
        mayWrite && (
          <Button aria-label={`${entityTexts.edit}: ${texts.attributes}`} onPress={edit.begin}>
            {entityTexts.edit}
          </Button>
        )
      }
    >
      {fields.shown.length === 0 ? (
        <p className={styles.muted!}>{texts.noAttributes}</p>
      ) : (
        <Facts
          facts={fields.shown.map(field => [
            field.label,
            <AttributeValue key={field.path} field={field} entity={entity} />,
          ])}
        />
      )}
    </Section>
  )
}

function AttributeValue({ field, entity }: { field: Field; entity: Entity }) {
  const texts = useMessages(entityMessages)
  const formats = useFormats()
  const value = storedValue(field, entity)
  if (field.kind === 'datetime' && typeof value === 'string')
    return <time dateTime={value}>{formats.exactTime(value)}</time>
  return (
    <>
      <Value value={value} />
      {field.isUndeclared && (
        <>
          {' '}
          <Badge>{texts.undeclared}</Badge>
        </>
      )}
    </>
  )
}

/** The fields of the form, and those that the page shows: links stand in a section of their own. */
function useFields(entity: Entity, newKeys: readonly string[]): { all: Field[]; shown: Field[] } {
  const declared = [...attributesOf(useSchema(), 'people').values()]
  const values = entity.attribute_values
  const used = declared.filter(({ key, state }) => state === 'active' || values[key] !== undefined)
  const names = new Set(declared.map(({ key }) => key))
  const unknown = [...new Set([...Object.keys(values), ...newKeys])].filter(key => !names.has(key)).map(undeclaredField)
  const fieldOf = (attribute: (typeof declared)[number]) => attributeField(attribute, values[attribute.key])
  return {
    all: [...used.map(fieldOf), ...unknown],
    shown: [...used.filter(attribute => !isRelationship(attribute)).map(fieldOf), ...unknown],
  }
}

function NewKey({ taken, onAdd }: { taken: readonly Field[]; onAdd(key: string): void }) {
  const texts = useMessages(messages)
  const [key, setKey] = useState('')
  const isTaken = taken.some(field => field.key === key.trim())
  return (
    <div className={styles.row!}>
      <div className={styles.grow!}>
        <TextField
          label={texts.addValue}
          placeholder={texts.newKey}
          value={key}
          onChange={setKey}
          {...(isTaken && { error: texts.keyTaken })}
        />
      </div>
      <Button
        isDisabled={key.trim() === '' || isTaken}
        onPress={() => {
          onAdd(key.trim())
          setKey('')
        }}
      >
        {texts.add}
      </Button>
    </div>
  )
}
