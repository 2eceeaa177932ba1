import { useQuery } from '@tanstack/react-query'
import { lazy, Suspense, useState } from 'react'
import { useMessages } from '../app/language.tsx'
import { useScope } from '../app/session.tsx'
import { segmentsQuery } from '../entity/schema.ts'
import { Icon } from '../ui/icon.tsx'
import { Menu } from '../ui/menu.tsx'
import type { MenuAction } from '../ui/menu-list.tsx'
import { NativeSelect } from '../ui/native-select.tsx'
import styles from './list.module.css'
import { messages } from './messages.ts'
import { type Change, effectiveFilter, type ListSearch } from './search.ts'

const SegmentDialog = lazy(() => import('./segment-dialog.tsx'))
const DeleteSegmentDialog = lazy(async () => ({ default: (await import('./segment-dialog.tsx')).DeleteSegmentDialog }))

/** Stands for no segment. */
const everybody = ''

type Opened = 'create' | 'update' | 'rename' | 'delete'

/** Chooses a saved segment, and saves the filter of the list as one. */
export default function SegmentChoice({ search, change }: { search: ListSearch; change: Change }) {
  const texts = useMessages(messages)
  const canWrite = useScope('schema:write')
  const { data: segments = [] } = useQuery(segmentsQuery)
  const [opened, setOpened] = useState<Opened>()
  const segment = segments.find(({ key }) => key === search.segment)
  const isChanged = segment !== undefined && search.filter !== undefined
  const close = () => setOpened(undefined)
  const action = (id: Opened, label: string, isDisabled: boolean): MenuAction => ({
    ...{ id, label, isDisabled },
    action: () => setOpened(id),
  })
  const actions = [
    action('create', texts.saveAsSegment, effectiveFilter(search) === undefined),
    action('update', texts.updateSegment, !isChanged),
    action('rename', texts.renameSegment, !segment),
    action('delete', texts.deleteSegment, !segment),
  ]
  if (segments.length === 0 && !canWrite && search.segment === undefined) return null
  return (
    <>
      <div className={styles.segment}>
        <NativeSelect
          aria-label={texts.segment}
          options={[
            { value: everybody, label: texts.everybody },
            // The address may name a deleted segment. The choice shows it, so that another one can be chosen.
            ...(search.segment && !segment ? [{ value: search.segment, label: search.segment }] : []),
            ...segments.map(({ key, name }) => ({
              value: key,
              label: key === segment?.key && isChanged ? `${name} (${texts.segmentChanged})` : name,
            })),
          ]}
          value={search.segment ?? everybody}
          onChange={key => change({ segment: key || undefined, filter: undefined })}
        />
      </div>
      {canWrite && (
        <Menu label={texts.segment} actions={actions}>
          <Icon name="more" />
        </Menu>
      )}
      <Suspense>
        {(opened === 'create' || opened === 'rename' || opened === 'update') && (
          <SegmentDialog
            kind={opened}
            segment={segment}
            filter={effectiveFilter(search) ?? {}}
            onClose={close}
            onSaved={({ key }) => {
              close()
              if (opened !== 'rename') change({ segment: key, filter: undefined })
            }}
          />
        )}
        {opened === 'delete' && segment && (
          <DeleteSegmentDialog
            segment={segment}
            onClose={close}
            onDeleted={() => {
              close()
              change({ segment: undefined })
            }}
          />
        )}
      </Suspense>
    </>
  )
}
