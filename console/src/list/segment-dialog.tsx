import type { Filter as ClientFilter, Segment } from '@kith/client'
import { client, useWrite } from '../app/client.ts'
import { useMessages } from '../app/language.tsx'
import { queryClient } from '../app/query-client.ts'
import type { Filter } from '../filters/filter-tree.ts'
import { ConfirmDialog } from '../ui/dialog.tsx'
import { TextField, useDraft } from '../ui/field.tsx'
import { FormDialog } from '../ui/form.tsx'
import { messages } from './messages.ts'

type SegmentDialogProps = {
  kind: 'create' | 'rename' | 'update'
  segment: Segment | undefined
  /** The filter of the list, which `create` and `update` save. */
  filter: Filter
  onClose(): void
  onSaved(segment: Segment): void
}

type Saved = { key: string; name: string; description: string | null; filter: ClientFilter }

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
  const isNew = kind === 'create'
  const { draft, field } = useDraft({
    name: isNew ? '' : segment!.name,
    key: undefined as string | undefined,
    description: isNew ? '' : (segment!.description ?? ''),
  })
  const { name, description } = draft
  const key = isNew ? (draft.key ?? keyOf(name)) : segment!.key
  const save = useWrite(
    ({ key, filter, ...body }: Saved, idempotencyKey) =>
      isNew
        ? client.segments.create({ ...body, key, filter }, { idempotencyKey })
        : client.segments.patch(key, { ...body, ...(kind === 'update' && { filter }) }),
    {
      onSuccess: saved => {
        queryClient.setQueryData<Segment[]>(['segments'], (before = []) => [
          ...before.filter(other => other.key !== saved.key),
          saved,
        ])
        onSaved(saved)
      },
      // The list and the count of a segment are based on its old filter.
      refresh: [['segments'], ...(isNew ? [] : [['entities', 'people']])],
    },
  )
  const body = { name, description: description || null, key, filter: filter as ClientFilter }
  const title = { create: texts.saveAsSegment, rename: texts.renameSegment, update: texts.updateSegment }[kind]
  return (
    <FormDialog title={title} onSubmit={() => save.mutate(body)} submit={texts.save} onClose={onClose} write={save}>
      <TextField label={texts.name} isRequired autoFocus {...field('name')} />
      {isNew && <TextField label={texts.key} help={texts.segmentKeyHelp} isRequired {...field('key')} value={key} />}
      <TextField label={texts.description} {...field('description')} />
    </FormDialog>
  )
}

type DeleteSegmentDialogProps = { segment: Segment; onClose(): void; onDeleted(): void }

/** Asks before a segment is deleted. */
export function DeleteSegmentDialog({ segment, onClose, onDeleted }: DeleteSegmentDialogProps) {
  const texts = useMessages(messages)
  const remove = useWrite(() => client.segments.delete(segment.key), { refresh: [['segments']], onSuccess: onDeleted })
  return (
    <ConfirmDialog
      title={texts.deleteSegmentTitle(segment.name)}
      action={texts.delete}
      write={remove}
      onClose={onClose}
    >
      <p>{texts.deleteSegmentText}</p>
    </ConfirmDialog>
  )
}
