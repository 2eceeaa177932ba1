import type { Definitions, StackRecord } from '@kith/client'
import { useQueryClient } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { useMessages } from '../app/language.tsx'
import { EditButton } from '../entity/edit-button.tsx'
import { EditForm } from '../entity/edit-form.tsx'
import type { Entity } from '../entity/entities.ts'
import { FieldValue } from '../entity/field-value.tsx'
import { attributeFields, type Field, profileField, storedValue, undeclaredField } from '../entity/fields.ts'
import { NewKey } from '../entity/new-key.tsx'
import { attributesOf } from '../entity/schema.ts'
import { type Edit, useEdit } from '../entity/use-edit.ts'
import { LongText } from '../entity/value.tsx'
import { messages } from './messages.ts'
import { recordQuery } from './record-queries.ts'
import styles from './records.module.css'

type RecordValuesProps = { record: StackRecord; definitions: Definitions; canEdit: boolean }

/** The values of a record: declared attributes first, then the keys that are not declared. Each is edited in its place. */
export function RecordValues({ record, definitions, canEdit }: RecordValuesProps) {
  const texts = useMessages(messages)
  const attributes = attributesOf(definitions, record.stack_key)
  const { declared, undeclared } = attributeFields(attributes, record.attribute_values)
  const row = (field: Field) => <ValueRow key={field.path} record={record} field={field} canEdit={canEdit} />
  return (
    <>
      <dl className={styles.values!}>{[profileField('external_id', texts.identifier), ...declared].map(row)}</dl>
      {(undeclared.length > 0 || canEdit) && <h3>{texts.undeclared}</h3>}
      {undeclared.length > 0 && <dl className={styles.values!}>{undeclared.map(row)}</dl>}
      {canEdit && (
        <NewValue record={record} isTaken={key => [...declared, ...undeclared].some(field => field.key === key)} />
      )}
    </>
  )
}

const entityOf = (record: StackRecord) => record as unknown as Entity

function useRecordEdit(record: StackRecord): Edit {
  const queryClient = useQueryClient()
  const { stack_key: stackKey, record_id: recordId } = record
  return useEdit({
    owner: stackKey,
    id: recordId,
    entity: entityOf(record),
    onSaved: saved => {
      queryClient.setQueryData(recordQuery(stackKey, recordId).queryKey, saved as unknown as StackRecord)
      queryClient.invalidateQueries({ queryKey: ['records', stackKey] })
    },
  })
}

function ValueRow({ record, field, canEdit }: { record: StackRecord; field: Field; canEdit: boolean }) {
  const edit = useRecordEdit(record)
  return (
    <Row field={field}>
      {edit.state ? (
        <EditForm edit={edit} isInPlace />
      ) : (
        <div className={styles.shown!}>
          <div className={styles.text!}>
            <FieldValue field={field} value={storedValue(field, entityOf(record))} />
          </div>
          {canEdit && <EditButton edit={edit} fields={[field]} name={field.label} look="quiet" />}
        </div>
      )}
    </Row>
  )
}

function Row({ field: { path, key, label, isUndeclared }, children }: { field: Field; children: ReactNode }) {
  return (
    <div className={styles.value!}>
      <dt>
        {isUndeclared ? <LongText text={key} isCode /> : <bdi>{label}</bdi>}
        {path !== '/external_id' && label !== key && <code className={styles.key!}>{key}</code>}
      </dt>
      <dd>{children}</dd>
    </div>
  )
}

/** Adds a value under a key that is not declared. */
function NewValue({ record, isTaken }: { record: StackRecord; isTaken(key: string): boolean }) {
  const edit = useRecordEdit(record)
  const added = edit.state?.fields[0]
  if (added)
    return (
      <dl className={styles.values!}>
        <Row field={added}>
          <EditForm edit={edit} isInPlace />
        </Row>
      </dl>
    )
  return <NewKey isTaken={isTaken} onAdd={key => edit.begin([undeclaredField(key)])} />
}
