import type { Definitions, Filter } from '@kith/client'
import { useState } from 'react'
import { useMessages } from '../app/language.tsx'
import { FilterEditor } from '../filters/filter-editor.tsx'
import type { Filter as EditedFilter } from '../filters/filter-tree.ts'
import { Button } from '../ui/button.tsx'
import { Actions, Dialog } from '../ui/dialog.tsx'
import { messages } from './messages.ts'

type FilterDialogProps = {
  owner: string
  definitions: Definitions
  filter: Filter | undefined
  onClose: () => void
  onApply: (filter: Filter | undefined) => void
}

/** Builds the filter of a list. */
export function FilterDialog({ owner, definitions, filter, onClose, onApply }: FilterDialogProps) {
  const texts = useMessages(messages)
  const initial = (filter ?? {}) as EditedFilter
  const [edited, setEdited] = useState<EditedFilter | undefined>(initial)
  const isEmpty = edited === undefined || Object.keys(edited).length === 0
  return (
    <Dialog title={texts.filter} isOpen onClose={onClose} size="wide">
      <FilterEditor owner={owner} definitions={definitions} initialFilter={initial} onChange={setEdited} />
      <Actions>
        <Button onPress={onClose}>{texts.cancel}</Button>
        <Button
          look="primary"
          isDisabled={edited === undefined}
          onPress={() => onApply(isEmpty ? undefined : (edited as Filter))}
        >
          {texts.applyFilter}
        </Button>
      </Actions>
    </Dialog>
  )
}
