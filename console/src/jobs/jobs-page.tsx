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
import { ColumnTable } from '../ui/table.tsx'
import { messages } from './messages.ts'
import { jobsQuery } from './queries.ts'

/** The page of the bulk changes: their content, author, time and outcome. Each leads to its refusals and its undo. */
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
  return (
    <ColumnTable
      hasCards
      label={texts.jobs}
      rows={rows}
      rowKey={({ id }) => id}
      columns={[
        [texts.what, ({ op }) => texts.ops[op], 'name'],
        [texts.owner, ({ owner }) => <OwnerName owner={owner} />],
        [texts.when, ({ started_at }) => formats.dateTime(started_at)],
        [texts.who, ({ actor }) => actor],
        [texts.changed, ({ done, total }) => `${formats.number(done)} / ${formats.number(total)}`],
        [texts.refused, ({ refused }) => formats.number(refused)],
        [
          texts.state,
          ({ state, undone_at }) =>
            undone_at === null ? (
              <Badge kind={stateKind[state].badge}>{states[state]}</Badge>
            ) : (
              <Badge kind="caution">{undoneAt(formats.dateTime(undone_at))}</Badge>
            ),
        ],
        [
          texts.details,
          job => (
            <Button aria-label={texts.detailsOf(formats.exactTime(job.started_at))} onPress={() => onShow(job)}>
              {texts.details}
            </Button>
          ),
          'action',
        ],
      ]}
    />
  )
}
