import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { client } from '../app/client.ts'
import { useMessages } from '../app/language.tsx'
import { Button } from '../ui/button.tsx'
import { CloseAction, Dialog } from '../ui/dialog.tsx'
import { TextField } from '../ui/field.tsx'
import { Problem } from '../ui/notice.tsx'
import { Loading } from '../ui/page.tsx'
import { messages } from './messages.ts'
import styles from './person.module.css'
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
    <Dialog title={texts.linksTitle} isOpen onClose={onClose}>
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

/** A text to copy. Where the browser allows no page to copy, the person selects it. */
function CopyField({ label, text }: { label: string; text: string }) {
  const texts = useMessages(messages)
  const [isCopied, setCopied] = useState(false)
  const copy = async () => {
    await navigator.clipboard.writeText(text)
    setCopied(true)
  }
  return (
    <div className={styles.copyField}>
      <TextField label={label} value={text} isReadOnly />
      {'clipboard' in navigator && (
        <Button onPress={copy} aria-label={`${isCopied ? texts.copied : texts.copy}: ${label}`}>
          {isCopied ? texts.copied : texts.copy}
        </Button>
      )}
    </div>
  )
}
