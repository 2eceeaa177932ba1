import type { Job } from '@kith/client'
import { useInfiniteQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { useFormats, useMessages } from '../app/language.tsx'
import { JobView, stateKind } from '../bulk/job-view.tsx'
import { messages as bulkMessages } from '../bulk/messages.ts'
import { OwnerName } from '../entity/entity-link.tsx'
import { Button } from '../ui/button.tsx'
import { Dialog } from '../ui/dialog.tsx'
import { Badge, EmptyState, Page } from '../ui/page.tsx'
import { PagedList } from '../ui/paged-list.tsx'
import { Table } from '../ui/table.tsx'
import { messages } from './messages.ts'
import { jobsQuery } from './queries.ts'

/** The page of the changes of many: what, who, when, and what became of them. Each leads to its refusals and its undo. */
export function JobsPage() {
  const texts = useMessages(messages)
  const jobs = useInfiniteQuery(jobsQuery)
  const [shown, setShown] = useState<Job>()
  return (
    <Page title={texts.jobs} subtitle={texts.subtitle}>
      <PagedList query={jobs} none={<EmptyState title={texts.none}>{texts.noneAdvice}</EmptyState>} more={texts.more}>
        {rows => <JobTable rows={rows} onShow={setShown} />}
      </PagedList>
      {shown && (
        <Dialog title={texts.ops[shown.op]} size="wide" hasDraft={false} onClose={() => setShown(undefined)}>
          <JobView owner={shown.owner} id={shown.id} onClose={() => setShown(undefined)} />
        </Dialog>
      )}
    </Page>
  )
}

function JobTable({ rows, onShow }: { rows: Job[]; onShow: (job: Job) => void }) {
  const texts = useMessages(messages)
  const { states, undoneAt } = useMessages(bulkMessages)
  const formats = useFormats()
  const headers = [
    texts.what,
    texts.owner,
    texts.when,
    texts.who,
    texts.changed,
    texts.refused,
    texts.state,
    texts.details,
  ]
  return (
    <Table hasCards label={texts.jobs} headers={headers}>
      {rows.map(job => (
        <tr key={job.id}>
          <th scope="row">{texts.ops[job.op]}</th>
          <td data-label={texts.owner}>
            <OwnerName owner={job.owner} />
          </td>
          <td data-label={texts.when}>{formats.dateTime(job.started_at)}</td>
          <td data-label={texts.who}>{job.actor}</td>
          <td data-label={texts.changed}>
            {formats.number(job.done)} / {formats.number(job.total)}
          </td>
          <td data-label={texts.refused}>{formats.number(job.refused)}</td>
          <td data-label={texts.state}>
            {job.undone_at === null ? (
              <Badge kind={stateKind[job.state].badge}>{states[job.state]}</Badge>
            ) : (
              <Badge kind="caution">{undoneAt(formats.dateTime(job.undone_at))}</Badge>
            )}
          </td>
          <td>
            <Button aria-label={texts.detailsOf(formats.exactTime(job.started_at))} onPress={() => onShow(job)}>
              {texts.details}
            </Button>
          </td>
        </tr>
      ))}
    </Table>
  )
}
