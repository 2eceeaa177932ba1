import { useState } from 'react'
import { useFormats, useMessages } from '../app/language.tsx'
import { useSession } from '../app/session.tsx'
import { useWrite } from '../app/write.ts'
import { Button } from '../ui/button.tsx'
import { LinkButton } from '../ui/link-button.tsx'
import { Problem } from '../ui/notice.tsx'
import { EmptyState } from '../ui/page.tsx'
import styles from './list.module.css'
import { messages } from './messages.ts'

const shopScopes = ['people:write', 'records:write', 'schema:read', 'schema:write']

/** What the list of an organization without people offers: a file, or a sample shop. */
export function EmptyStart({ title }: { title: string }) {
  const texts = useMessages(messages)
  const { scopes } = useSession()
  return (
    <EmptyState title={title}>
      <div className={styles.begin}>
        <LinkButton to="/import" look="primary">
          {texts.importFile}
        </LinkButton>
        {shopScopes.every(scope => scopes.includes(scope)) && <FillShop />}
      </div>
    </EmptyState>
  )
}

function FillShop() {
  const texts = useMessages(messages)
  const formats = useFormats()
  const [done, setDone] = useState(0)
  // Every query may show something of the shop.
  const fill = useWrite(async () => (await import('./fill-shop.ts')).fillShop(setDone), { refresh: [[]] })
  return (
    <>
      <Button onPress={() => fill.mutate()} isPending={fill.isPending}>
        {texts.fillShop}
      </Button>
      {fill.isPending && <p role="status">{texts.fillingShop(formats.percent(Math.min(done, 1)))}</p>}
      {fill.error && <Problem error={fill.error} onRetry={() => fill.mutate()} />}
    </>
  )
}
