import type { Job, JobRefusal, Undone } from '@kith/client'
import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { useEffect } from 'react'
import { client, pagedQuery, useWrite } from '../app/client.ts'
import { useFormats, useMessages } from '../app/language.tsx'
import { queryClient } from '../app/query-client.ts'
import { useServiceTexts } from '../app/use-service-texts.ts'
import { Button } from '../ui/button.tsx'
import { CloseAction } from '../ui/dialog.tsx'
import { Loading, Notice, Problem } from '../ui/page.tsx'
import { PagedList } from '../ui/paged-list.tsx'
import { Table } from '../ui/table.tsx'
import styles from './bulk.module.css'
import { messages } from './messages.ts'

const pollMs = 500

/** The look of each state of a job. */
export const stateKind = {
  running: { notice: 'info', badge: 'accent' },
  done: { notice: 'success', badge: 'positive' },
  cancelled: { notice: 'caution', badge: 'caution' },
  failed: { notice: 'error', badge: 'negative' },
} as const satisfies Record<Job['state'], object>

type JobViewProps = { owner: string; id: string; onClose: () => void }

/** A running or finished job: its progress, its refusals, and its undo. The service continues it without the page. */
export function JobView({ owner, id, onClose }: JobViewProps) {
  const texts = useMessages(messages)
  const queryKey = ['jobs', id]
  const { data: job, error } = useQuery({
    queryKey,
    queryFn: ({ signal }) => client.jobs.get(id, { signal }),
    refetchInterval: ({ state }) => (state.data && state.data.state !== 'running' ? false : pollMs),
  })
  const refreshList = () => queryClient.invalidateQueries({ queryKey: ['entities', owner] })
  const isOver = job !== undefined && job.state !== 'running'
  // biome-ignore lint/correctness/useExhaustiveDependencies: the list is read again once, at the end
  useEffect(() => {
    if (isOver) void refreshList()
  }, [isOver])
  const cancel = useWrite(() => client.jobs.cancel(id), { refresh: [['jobs']] })
  const undo = useWrite(() => client.jobs.undo(id), { refresh: [['jobs'], ['entities', owner]] })
  if (!job) return error ? <Problem error={error} /> : <Loading />
  const canUndo = isOver && job.op !== 'erase' && job.done > 0 && job.undone_at === null
  return (
    <>
      <Progress job={job} />
      {cancel.error && <Problem error={cancel.error} />}
      {undo.error && <Problem error={undo.error} />}
      {undo.data && <UndoNotice undone={undo.data} />}
      {job.refused > 0 && isOver && <Refused id={id} />}
      <CloseAction onClose={onClose}>
        {!isOver && (
          <Button onPress={() => cancel.mutate()} isPending={cancel.isPending}>
            {texts.cancel}
          </Button>
        )}
        {canUndo && (
          <Button onPress={() => undo.mutate()} isPending={undo.isPending}>
            {undo.isPending ? `${texts.undoing}…` : texts.undo}
          </Button>
        )}
      </CloseAction>
    </>
  )
}

function Progress({ job: { state, total, done, unchanged, refused, remaining, failure, undone_at } }: { job: Job }) {
  const texts = useMessages(messages)
  const formats = useFormats()
  const counts = [
    texts.changed(done, formats.number(done)),
    ...(unchanged > 0 ? [texts.alreadySo(unchanged, formats.number(unchanged))] : []),
    ...(refused > 0 ? [texts.refused(refused, formats.number(refused))] : []),
    ...(remaining > 0 ? [texts.remaining(formats.number(remaining))] : []),
  ]
  return (
    <>
      {state === 'running' && (
        <progress aria-label={texts.progress} max={Math.max(1, total)} value={total - remaining} />
      )}
      <Notice kind={stateKind[state].notice} title={texts.states[state]}>
        {failure && <p>{failure}</p>}
        {counts.map(text => (
          <p key={text}>{text}</p>
        ))}
        {state === 'running' && <p>{texts.goesOn}</p>}
        {undone_at !== null && <p>{texts.undoneAt(formats.dateTime(undone_at))}</p>}
      </Notice>
    </>
  )
}

function UndoNotice({ undone: { deleted, restored, updated, left } }: { undone: Undone }) {
  const texts = useMessages(messages)
  const formats = useFormats()
  const back = deleted + restored + updated
  return (
    <Notice kind="success" title={texts.undone(back, formats.number(back))}>
      {left.length > 0 && <p>{texts.undoLeft(left.length, formats.number(left.length))}</p>}
    </Notice>
  )
}

function Refused({ id }: { id: string }) {
  const texts = useMessages(messages)
  const refused = useInfiniteQuery(pagedQuery(['jobs', id, 'refused'], at => client.jobs.refused(id, at).page()))
  return (
    <PagedList query={refused} none={null} more={texts.more}>
      {refusals => <RefusalList refusals={refusals} />}
    </PagedList>
  )
}

/** The entities that were or would be refused, with the reasons. */
export function RefusalList({ refusals }: { refusals: readonly JobRefusal[] }) {
  const texts = useMessages(messages)
  const { said } = useServiceTexts()
  return (
    <div className={styles.refused}>
      <Table label={texts.refusedList} headers={[texts.who, texts.reason]}>
        {refusals.map(({ id, external_id, message, details }) => (
          <tr key={id}>
            <td>{external_id ?? <code>{id}</code>}</td>
            <td>
              {details.length === 0 && said(message)}
              {details.map(({ path, message }) => (
                <div key={path + message}>
                  {path && <code>{path}</code>} {said(message)}
                </div>
              ))}
            </td>
          </tr>
        ))}
      </Table>
    </div>
  )
}
