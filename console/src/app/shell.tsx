import { Link, Outlet, useNavigate, useRouterState } from '@tanstack/react-router'
import { useEffect, useState } from 'react'
import { Button } from '../ui/button.tsx'
import { Dialog } from '../ui/dialog.tsx'
import { Select } from '../ui/field.tsx'
import { Problem } from '../ui/notice.tsx'
import { Loading } from '../ui/page.tsx'
import { KeysProvider, useShortcut, useShortcuts } from './keys.tsx'
import { type Language, useLanguage, useMessages } from './language.tsx'
import { messages } from './messages.ts'
import { requestConsole, type Session, SessionProvider, useSession, useSessionQuery } from './session.tsx'
import styles from './shell.module.css'

/** The frame of all pages behind the sign-in: the navigation, and who is signed in. */
export function Shell() {
  const { data: session } = useSessionQuery()
  if (!session) return <Loading />
  return (
    <SessionProvider session={session}>
      <KeysProvider>
        <Frame />
      </KeysProvider>
    </SessionProvider>
  )
}

/** The pages of the navigation. A page is shown if the session has its scope. */
const pages = [
  { to: '/people', label: 'people', scope: 'people:read', key: 'p' },
  { to: '/records', label: 'records', scope: 'records:read', key: 'r' },
  { to: '/schema', label: 'schema', scope: 'schema:read', key: 's' },
  { to: '/import', label: 'import', scope: 'people:write', key: 'i' },
  { to: '/export', label: 'export', scope: 'people:read', key: 'e' },
  { to: '/consents', label: 'consents', scope: 'consents:read', key: 'c' },
  { to: '/ledger', label: 'ledger', scope: 'consents:read', key: 'l' },
  { to: '/changes', label: 'changes', scope: 'changes:read', key: 'h' },
  { to: '/webhooks', label: 'webhooks', scope: 'webhooks:read', key: 'w' },
  { to: '/operations', label: 'operations', scope: 'operations:read', key: 'o' },
  { to: '/access', label: 'access', scope: 'access:read', key: 'a' },
] as const

type NavigationPage = (typeof pages)[number]

function Frame() {
  const texts = useMessages(messages)
  const session = useSession()
  const [isMenuOpen, setMenuOpen] = useState(false)
  const path = useRouterState({ select: state => state.location.pathname })
  // biome-ignore lint/correctness/useExhaustiveDependencies: every change of the page closes the menu of a narrow window
  useEffect(() => setMenuOpen(false), [path])
  const allowed = pages.filter(({ scope }) => session.scopes.includes(scope))
  return (
    <div className={styles.frame!}>
      <a className={styles.skip!} href="#main">
        {texts.skipToContent}
      </a>
      <aside className={styles.side!}>
        <div className={styles.brand!}>
          <img src="/console/icon.svg" alt="" width="26" height="26" />
          <strong>kith</strong>
          <span className={styles.organization!}>{session.organization.key}</span>
          <button
            type="button"
            className={styles.menuButton!}
            aria-expanded={isMenuOpen}
            onClick={() => setMenuOpen(!isMenuOpen)}
          >
            {texts.menu}
          </button>
        </div>
        <div className={isMenuOpen ? `${styles.menu} ${styles.open}` : styles.menu!}>
          <nav aria-label={texts.pages}>
            <ul className={styles.links!}>
              {allowed.map(page => (
                <li key={page.to}>
                  <Link
                    to={page.to}
                    className={styles.link!}
                    activeProps={{ className: styles.active!, 'aria-current': 'page' }}
                  >
                    {texts[page.label]}
                  </Link>
                </li>
              ))}
            </ul>
          </nav>
          <Account session={session} />
        </div>
      </aside>
      <main className={styles.main!} id="main" tabIndex={-1}>
        <Outlet />
      </main>
      {allowed.map(page => (
        <GoTo key={page.to} page={page} />
      ))}
      <KeysDialog />
    </div>
  )
}

function GoTo({ page }: { page: NavigationPage }) {
  const texts = useMessages(messages)
  const navigate = useNavigate()
  useShortcut(`g ${page.key}`, texts.goTo(texts[page.label]), () => navigate({ to: page.to }))
  return null
}

function Account({ session }: { session: Session }) {
  const texts = useMessages(messages)
  const { language, setLanguage } = useLanguage()
  const [error, setError] = useState<unknown>()
  const signOut = async () => {
    try {
      await requestConsole('DELETE', 'session')
      // A new document holds nothing of what the session has read.
      location.assign('/console/sign-in')
    } catch (error) {
      setError(error)
    }
  }
  return (
    <div className={styles.account!}>
      <Select<Language>
        aria-label={texts.language}
        options={[
          { value: 'en', label: 'English' },
          { value: 'de', label: 'Deutsch' },
          { value: 'it', label: 'Italiano' },
        ]}
        value={language}
        onChange={setLanguage}
      />
      <p className={styles.name!}>
        {texts.signedInAs} <strong title={session.name}>{session.name}</strong>
      </p>
      <Button onPress={signOut}>{texts.signOut}</Button>
      {error !== undefined && <Problem error={error} />}
      <p className={styles.version!}>kith {session.version}</p>
    </div>
  )
}

/** Lists the keys of the page. */
function KeysDialog() {
  const texts = useMessages(messages)
  const [isOpen, setOpen] = useState(false)
  const shortcuts = useShortcuts()
  useShortcut('?', texts.listKeys, () => setOpen(true))
  return (
    <Dialog title={texts.keys} isOpen={isOpen} onClose={() => setOpen(false)}>
      <dl className={styles.keys!}>
        {shortcuts.map(({ keys, description }) => (
          <div key={keys}>
            <dt>
              {keys.split(' ').map(key => (
                <kbd key={key}>{key}</kbd>
              ))}
            </dt>
            <dd>{description}</dd>
          </div>
        ))}
      </dl>
      <Button onPress={() => setOpen(false)} autoFocus>
        {texts.close}
      </Button>
    </Dialog>
  )
}
