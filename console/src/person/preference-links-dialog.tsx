import { useQuery } from '@tanstack/react-query'
import { client } from '../app/client.ts'
import { useMessages } from '../app/language.tsx'
import { CopyField } from '../ui/copy-field.tsx'
import { CloseAction, Dialog } from '../ui/dialog.tsx'
import { Loading, Problem } from '../ui/page.tsx'
import { rightsMessages } from './rights-messages.ts'

/** Makes links to the pages where the person sees and changes consents. */
export function PreferenceLinksDialog({ id, onClose }: { id: string; onClose: () => void }) {
  const texts = useMessages(rightsMessages)
  const { data, error, refetch } = useQuery({
    queryKey: ['entities', 'people', 'links', id],
    queryFn: ({ signal }) => client.consents.links({ id }, {}, { signal }),
    gcTime: 0,
  })
  return (
    <Dialog title={texts.linksTitle} onClose={onClose}>
      <p>{texts.linksAdvice}</p>
      {!data && (error ? <Problem error={error} onRetry={() => refetch()} /> : <Loading />)}
      {data && (
        <>
          <CopyField label={texts.preferences} text={data.preferences_url} />
          <CopyField label={texts.unsubscribe} text={data.unsubscribe_url} />
        </>
      )}
      <CloseAction onClose={onClose} />
    </Dialog>
  )
}
