import type { Attribute, Definitions, StackRecord } from '@kith/client'
import { useState } from 'react'
import { useMessages } from '../app/language.tsx'
import { attributesOf } from '../entity/schema.ts'
import { LongText, Value } from '../entity/value.tsx'
import { Button } from '../ui/button.tsx'
import { TextField } from '../ui/field.tsx'
import { messages } from './messages.ts'
import type { RecordField } from './record-field.ts'
import styles from './records.module.css'
import { AttributeValue } from './value-display.tsx'
import { ValueEditor } from './value-editor.tsx'

type RecordValuesProps = { record: StackRecord; definitions: Definitions; canEdit: boolean }

/** The values of a record: declared attributes first, then the keys that are not declared. Each is edited in its place. */
export function RecordValues({ record, definitions, canEdit }: RecordValuesProps) {
  const texts = useMessages(messages)
  const [edited, setEdited] = useState<string>()
  const attributes = attributesOf(definitions, record.stack_key)
  const active = [...attributes.values()].filter(({ state }) => state === 'active')
  const declaredKeys = new Set(active.map(({ key }) => key))
  const values = record.attribute_values
  const fieldOf = (key: string, attribute: Attribute | undefined): RecordField => ({
    ...{ group: 'attribute', key, attribute },
    name: attribute?.name ?? key,
    value: values[key] ?? null,
    isShownByName: true,
  })
  const declared = active.map(attribute => fieldOf(attribute.key, attribute))
  const unknown = Object.keys(values)
    .filter(key => !declaredKeys.has(key))
    .map(key => fieldOf(key, undefined))
  const identifier: RecordField = {
    ...{ group: 'field', key: 'external_id', attribute: undefined },
    ...{ name: texts.identifier, value: record.external_id, isShownByName: true },
  }
  const row = (field: RecordField) => {
    const id = `${field.group} ${field.key}`
    return (
      <ValueRow
        key={id}
        record={record}
        field={field}
        isEdited={edited === id}
        onEdit={canEdit ? () => setEdited(id) : undefined}
        onClose={() => setEdited(undefined)}
      />
    )
  }
  return (
    <>
      <dl className={styles.values!}>{[identifier, ...declared].map(row)}</dl>
      {(unknown.length > 0 || canEdit) && <h3>{texts.undeclared}</h3>}
      {unknown.length > 0 && <dl className={styles.values!}>{unknown.map(row)}</dl>}
      {canEdit && <NewValue record={record} />}
    </>
  )
}

type ValueRowProps = {
  record: StackRecord
  field: RecordField
  isEdited: boolean
  onEdit: (() => void) | undefined
  onClose: () => void
}

function ValueRow({ record, field, isEdited, onEdit, onClose }: ValueRowProps) {
  const texts = useMessages(messages)
  const { group, key, name, attribute, value } = field
  return (
    <div className={styles.value!}>
      <dt>
        {group === 'attribute' && !attribute ? <LongText text={key} isCode /> : <bdi>{name}</bdi>}
        {attribute && attribute.name !== key && <code className={styles.key!}>{key}</code>}
      </dt>
      <dd>
        {isEdited ? (
          <ValueEditor record={record} field={field} onClose={onClose} />
        ) : (
          <div className={styles.shown!}>
            <div className={styles.text!}>
              {group === 'attribute' ? <AttributeValue attribute={attribute} value={value} /> : <Value value={value} />}
            </div>
            {onEdit && (
              <Button look="quiet" onPress={onEdit} aria-label={texts.editValue(shortName(name))}>
                {texts.edit}
              </Button>
            )}
          </div>
        )}
      </dd>
    </div>
  )
}

const shortName = (name: string) => (name.length > 60 ? `${name.slice(0, 60)}…` : name)

/** Adds a value under a key that is not declared. */
function NewValue({ record }: { record: StackRecord }) {
  const texts = useMessages(messages)
  const [key, setKey] = useState('')
  const [isNamed, setNamed] = useState(false)
  if (isNamed && !(key in record.attribute_values))
    return (
      <ValueEditor
        record={record}
        field={{ group: 'attribute', key, name: key, attribute: undefined, value: null, isShownByName: false }}
        onClose={() => {
          setNamed(false)
          setKey('')
        }}
      />
    )
  return (
    <form
      className={styles.newValue!}
      onSubmit={event => {
        event.preventDefault()
        setNamed(key.trim() !== '')
      }}
    >
      <TextField label={texts.newKey} value={key} onChange={setKey} />
      <Button type="submit">{texts.addValue}</Button>
    </form>
  )
}
