import type { StackRecord } from '@kith/client'
import { isKithError } from '@kith/client'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { client } from '../app/client.ts'
import { useMessages } from '../app/language.tsx'
import { useScope } from '../app/session.tsx'
import { isEqual } from '../entity/equal.ts'
import { isRelationship } from '../entity/schema.ts'
import { Button } from '../ui/button.tsx'
import { Checkbox } from '../ui/field.tsx'
import { Problem } from '../ui/notice.tsx'
import { type Conflict, ConflictNotice } from './conflict-notice.tsx'
import { messages } from './messages.ts'
import type { RecordField } from './record-field.ts'
import { recordQuery } from './record-queries.ts'
import styles from './records.module.css'
import { valueErrors } from './value-errors.ts'
import { useFaultText, ValueField } from './value-field.tsx'
import { formOf, textOf, valueOfText } from './value-text.ts'

type ValueEditorProps = { record: StackRecord; field: RecordField; onClose: () => void }

const valueIn = (record: StackRecord, { group, key }: RecordField): unknown =>
  (group === 'field' ? record.external_id : record.attribute_values[key]) ?? null

/** The value was changed by another write since the editor opened. */
class ConflictError extends Error {
  readonly conflict: Conflict
  constructor(conflict: Conflict) {
    super('The value was changed in the meantime.')
    this.conflict = conflict
  }
}

/** Writes one value under the version of the record. A change of other values in the meantime is no conflict. */
function useValueWrite(record: StackRecord, field: RecordField, makesTargets: boolean) {
  const queryClient = useQueryClient()
  const mayReadChanges = useScope('changes:read')
  const { stack_key: stackKey, record_id: recordId } = record
  const { group, key } = field
  const write = (value: unknown, version: number) => {
    const body = group === 'field' ? { external_id: value as string | null } : { attribute_values: { [key]: value } }
    const references = makesTargets ? {} : { references: 'strict' as const }
    return client.stack(stackKey).patchById(recordId, body, { ifMatch: version, representation: true, ...references })
  }
  return useMutation({
    mutationFn: async ({ value, expected, version }: { value: unknown; expected: unknown; version: number }) => {
      try {
        return await write(value, version)
      } catch (error) {
        if (!isKithError(error) || error.status !== 412) throw error
        const now = await client.stack(stackKey).getById(recordId)
        const stored = valueIn(now, field)
        if (isEqual(stored, expected)) return write(value, now.version)
        const [last] = mayReadChanges ? (await client.stack(stackKey).historyById(recordId, { limit: 1 })).items : []
        throw new ConflictError({ stored, version: now.version, ...(last && { actor: last.actor, at: last.at }) })
      }
    },
    onSuccess: saved => {
      queryClient.setQueryData(recordQuery(stackKey, recordId).queryKey, saved)
      return queryClient.invalidateQueries({ queryKey: ['records', stackKey] })
    },
  })
}

/** Edits one value in its place. Enter saves a single line, Escape closes. */
export function ValueEditor({ record, field, onClose }: ValueEditorProps) {
  const texts = useMessages(messages)
  const faultText = useFaultText()
  const queryClient = useQueryClient()
  const { group, key, name, attribute, value } = field
  // The form stays while the editor is open, also if the stored value changes meanwhile.
  const [form] = useState(() => (group === 'field' ? 'plain' : formOf(attribute, value)))
  const [start] = useState({ value, version: record.version })
  const [text, setText] = useState(() => textOf(form, value))
  const [makesTargets, setMakesTargets] = useState(false)
  const [fault, setFault] = useState<string>()
  const write = useValueWrite(record, field, makesTargets)
  const save = (expected: unknown, version: number) => {
    const parsed = group === 'field' ? { value: text.trim() || null } : valueOfText(form, attribute, text)
    if ('fault' in parsed) return setFault(faultText(parsed.fault))
    write.mutate({ value: parsed.value, expected, version }, { onSuccess: onClose })
  }
  const submit = (event: FormEvent) => {
    event.preventDefault()
    // An empty text in place of a stored empty text, or a moment in another notation, is no change.
    if (text === textOf(form, start.value)) return onClose()
    save(start.value, start.version)
  }
  const keepStored = async () => {
    await queryClient.invalidateQueries({ queryKey: ['records', record.stack_key] })
    onClose()
  }
  const conflict = write.error instanceof ConflictError ? write.error.conflict : undefined
  const { own, others } = valueErrors(write.error)
  return (
    <form
      noValidate
      className={styles.editor!}
      onSubmit={submit}
      onKeyDown={event => event.key === 'Escape' && onClose()}
    >
      <ValueField
        label={name}
        isLabelHidden={field.isShownByName}
        attribute={attribute}
        form={form}
        text={text}
        onChange={next => {
          setText(next)
          setFault(undefined)
        }}
        error={fault ?? own[key]}
        autoFocus
      />
      {attribute && isRelationship(attribute) && (
        <Checkbox isSelected={makesTargets} onChange={setMakesTargets}>
          {texts.makeTargets}
        </Checkbox>
      )}
      {conflict && (
        <ConflictNotice
          conflict={conflict}
          before={start.value}
          mine={text}
          isPending={write.isPending}
          onKeepStored={keepStored}
          onWriteMine={() => save(conflict.stored, conflict.version)}
        />
      )}
      {write.error && !conflict && others && <Problem error={write.error} />}
      {!conflict && <SaveOrCancel isPending={write.isPending} onCancel={onClose} />}
    </form>
  )
}

function SaveOrCancel({ isPending, onCancel }: { isPending: boolean; onCancel: () => void }) {
  const texts = useMessages(messages)
  return (
    <div className={styles.actions!}>
      <Button type="submit" look="primary" isPending={isPending}>
        {texts.save}
      </Button>
      <Button onPress={onCancel}>{texts.cancel}</Button>
    </div>
  )
}
