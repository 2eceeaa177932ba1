import { isKithError } from '@kith/client'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi, Navigate } from '@tanstack/react-router'
import { client } from '../app/client.ts'
import { Problem } from '../ui/notice.tsx'
import { Loading, Page } from '../ui/page.tsx'
import { DeletedRecord } from './deleted-record.tsx'
import { MissingRecord } from './missing-record.tsx'
import { recordQuery } from './record-queries.ts'
import { RecordView } from './record-view.tsx'

const route = getRouteApi('/shell/records/$stackKey/$recordId')

/** One record. An address with the external identifier leads to the one with the internal identifier, which never changes. */
export function RecordPage() {
  const { stackKey, recordId } = route.useParams()
  const { by, version } = route.useSearch()
  const view = { stackKey, recordId }
  if (by === 'external_id') return <ByExternalId {...view} />
  return <ById key={`${stackKey} ${recordId}`} {...view} version={version} />
}

type Address = { stackKey: string; recordId: string }

function ByExternalId({ stackKey, recordId }: Address) {
  const { data, error, refetch } = useQuery({
    queryKey: ['records', stackKey, 'name', recordId],
    queryFn: ({ signal }) => client.stack(stackKey).get(recordId, { signal }),
  })
  if (data)
    return (
      <Navigate to="/records/$stackKey/$recordId" params={{ stackKey, recordId: data.record_id }} search={{}} replace />
    )
  if (isKithError(error, 'not_found')) return <MissingRecord stackKey={stackKey} name={recordId} />
  return <Page title={recordId}>{error ? <Problem error={error} onRetry={() => refetch()} /> : <Loading />}</Page>
}

function ById({ stackKey, recordId, version }: Address & { version: number | undefined }) {
  const { data, error, refetch } = useQuery(recordQuery(stackKey, recordId, version))
  if (data) return <RecordView record={data} />
  if (isKithError(error, 'not_found')) return <DeletedRecord stackKey={stackKey} recordId={recordId} />
  if (isKithError(error, 'invalid_parameter')) return <MissingRecord stackKey={stackKey} name={recordId} />
  return <Page title={recordId}>{error ? <Problem error={error} onRetry={() => refetch()} /> : <Loading />}</Page>
}
