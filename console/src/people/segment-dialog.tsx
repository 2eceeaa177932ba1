import type { Filter as ClientFilter, Segment } from '@kith/client'
import { KithError } from '@kith/client'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { client } from '../app/client.ts'
import { useMessages } from '../app/language.tsx'
import { useSendOnce } from '../app/send-once.ts'
import type { Filter } from '../filters/filter-tree.ts'
import { Button } from '../ui/button.tsx'
import { Actions, Dialog } from '../ui/dialog.tsx'
import { TextField } from '../ui/field.tsx'
import { Problem } from '../ui/notice.tsx'
import { faultAt, otherFaults } from './field-faults.ts'
import { messages } from './messages.ts'

type SegmentDialogProps = {
  kind: 'create' | 'rename' | 'update'
  segment: Segment | undefined
  /** The filter of the list, which `create` and `update` save. */
  filter: Filter
  onClose(): void
  onSaved(segment: Segment): void
}

/** A key made of a name: `Readers in Rome` becomes `readers_in_rome`. */
const keyOf = (name: string): string =>
  name
    .normalize('NFKD')
    .toLowerCase()
    .replaceAll(/\p{Mark}/gu, '')
    .replaceAll(/[^a-z0-9]+/g, '_')
    .replace(/^[^a-z]+/, '')
    .replace(/_$/, '')
    .slice(0, 63)

/** Saves a filter as a segment, or changes one. */
export default function SegmentDialog({ kind, segment, filter, onClose, onSaved }: SegmentDialogProps) {
  const texts = useMessages(messages)
  const queryClient = useQueryClient()
  const isNew = kind === 'create'
  const [name, setName] = useState(isNew ? '' : segment!.name)
  const [typedKey, setTypedKey] = useState<string>()
  const [description, setDescription] = useState(isNew ? '' : (segment!.description ?? ''))
  const key = isNew ? (typedKey ?? keyOf(name)) : segment!.key
  const sendOnce = useSendOnce()
  const { mutate, isPending, error } = useMutation({
    mutationFn: () => {
      const body = { name, description: description === '' ? null : description }
      const created = { ...body, key, filter: filter as ClientFilter }
      if (isNew) return sendOnce(created, idempotencyKey => client.segments.create(created, { idempotencyKey }))
      return client.segments.patch(key, { ...body, ...(kind === 'update' && { filter: filter as ClientFilter }) })
    },
    onSuccess: async saved => {
      queryClient.setQueryData<Segment[]>(['segments'], (before = []) => [
        ...before.filter(other => other.key !== saved.key),
        saved,
      ])
      onSaved(saved)
      await queryClient.invalidateQueries({ queryKey: ['segments'] })
      // The list and the count of the segment have its old filter.
      if (!isNew) await queryClient.invalidateQueries({ queryKey: ['people'] })
    },
  })
  const title = { create: texts.saveAsSegment, rename: texts.renameSegment, update: texts.updateSegment }[kind]
  const submit = (event: FormEvent) => {
    event.preventDefault()
    mutate()
  }
  const isTaken = error instanceof KithError && error.code === 'duplicate_entry'
  return (
    <Dialog title={title} isOpen onClose={onClose}>
      <form onSubmit={submit} style={{ display: 'contents' }}>
        <TextField
          label={texts.segmentName}
          value={name}
          onChange={setName}
          error={faultAt(error, '/name')}
          isRequired
          autoFocus
        />
        {isNew && (
          <TextField
            label={texts.segmentKey}
            help={texts.segmentKeyHelp}
            value={key}
            onChange={setTypedKey}
            error={isTaken ? error.message : faultAt(error, '/key')}
            isRequired
          />
        )}
        <TextField
          label={texts.segmentDescription}
          value={description}
          onChange={setDescription}
          error={faultAt(error, '/description')}
        />
        {!isTaken && otherFaults(error, ['/name', '/key', '/description']) && <Problem error={error} />}
        <Actions>
          <Button onPress={onClose}>{texts.cancel}</Button>
          <Button look="primary" type="submit" isPending={isPending}>
            {texts.save}
          </Button>
        </Actions>
      </form>
    </Dialog>
  )
}
