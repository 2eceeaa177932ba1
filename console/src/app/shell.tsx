import { Link, Outlet, useNavigate, useRouterState } from '@tanstack/react-router'
import { lazy, Suspense, useEffect, useState } from 'react'
import { Button } from '../ui/button.tsx'
import { NativeSelect } from '../ui/native-select.tsx'
import { Problem } from '../ui/notice.tsx'
import { Loading } from '../ui/page.tsx'
import { KeysProvider, useShortcut } from './keys.tsx'
import { type Language, useLanguage, useMessages } from './language.tsx'
import { messages } from './messages.ts'
import { messages as passwordMessages } from './password-messages.ts'
import { requestConsole, type Session, SessionProvider, useSession, useSessionQuery } from './session.tsx'
import styles from './shell.module.css'
import { useWrite } from './write.ts'

const languageNames: Record<Language, string> = { en: 'English', de: 'Deutsch', it: 'Italiano' }

const PasswordDialog = lazy(() => import('./password-dialog.tsx'))
const KeysDialog = lazy(() => import('./keys-dialog.tsx'))

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

/** The pages of the navigation. A page is shown if the session has its scope, or one of them. */
const pages = [
  { to: '/people', label: 'people', scope: 'people:read', key: 'p' },
  { to: '/records', label: 'records', scope: 'records:read', key: 'r' },
  { to: '/reports', label: 'reports', scope: ['people:read', 'records:read'], key: 't' },
  { to: '/schema', label: 'schema', scope: 'schema:read', key: 's' },
  { to: '/import', label: 'import', scope: 'people:write', key: 'i' },
  { to: '/export', label: 'export', scope: 'people:read', key: 'e' },
  { to: '/consents', label: 'consents', scope: 'consents:read', key: 'c' },
  { to: '/ledger', label: 'ledger', scope: 'consents:read', key: 'l' },
  { to: '/deliverability', label: 'deliverability', scope: ['people:read', 'webhooks:read'], key: 'd' },
  { to: '/changes', label: 'changes', scope: 'changes:read', key: 'h' },
  { to: '/webhooks', label: 'webhooks', scope: 'webhooks:read', key: 'w' },
  { to: '/lifetimes', label: 'lifetimes', scope: 'people:erase', key: 'f' },
  { to: '/erasures', label: 'erasures', scope: 'people:erase', key: 'u' },
  { to: '/operations', label: 'operations', scope: 'operations:read', key: 'o' },
  { to: '/access', label: 'access', scope: 'access:read', key: 'a' },
  { to: '/access-log', label: 'accessLog', scope: 'access:read', key: 'v' },
] as const

type NavigationPage = (typeof pages)[number]

function Frame() {
  const texts = useMessages(messages)
  const session = useSession()
  const [isMenuOpen, setMenuOpen] = useState(false)
  const [isKeysOpen, setKeysOpen] = useState(false)
  useShortcut('?', texts.listKeys, () => setKeysOpen(true))
  const path = useRouterState({ select: state => state.location.pathname })
  // biome-ignore lint/correctness/useExhaustiveDependencies: every change of the page closes the menu of a narrow window
  useEffect(() => setMenuOpen(false), [path])
  const allowed = pages.filter(({ scope }) => [scope].flat().some(each => session.scopes.includes(each)))
  return (
    <div className={styles.frame}>
      <a className={styles.skip} href="#main">
        {texts.skipToContent}
      </a>
      <aside className={styles.side}>
        <div className={styles.brand}>
          <img src="/console/icon.svg" alt="" width="26" height="26" />
          <strong>kith</strong>
          <span className={styles.organization}>{session.organization.key}</span>
          <button
            type="button"
            className={styles.menuButton}
            aria-expanded={isMenuOpen}
            onClick={() => setMenuOpen(!isMenuOpen)}
          >
            {texts.menu}
          </button>
        </div>
        <div className={isMenuOpen ? `${styles.menu} ${styles.open}` : styles.menu}>
          <nav aria-label={texts.pages}>
            <ul className={styles.links}>
              {allowed.map(page => (
                <li key={page.to}>
                  <Link
                    to={page.to}
                    className={styles.link}
                    activeProps={{ className: styles.active, 'aria-current': 'page' }}
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
      <main className={styles.main} id="main" tabIndex={-1}>
        <Outlet />
      </main>
      {allowed.map(page => (
        <GoTo key={page.to} page={page} />
      ))}
      <Suspense>{isKeysOpen && <KeysDialog onClose={() => setKeysOpen(false)} />}</Suspense>
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
  const { changePassword } = useMessages(passwordMessages)
  const [isChanging, setChanging] = useState(false)
  // A new document holds nothing of what the session has read.
  const signOut = useWrite(() => requestConsole('DELETE', 'session'), {
    onSuccess: () => location.assign('/console/sign-in'),
  })
  return (
    <div className={styles.account}>
      <NativeSelect
        aria-label={texts.language}
        options={Object.entries(languageNames).map(([value, label]) => ({ value: value as Language, label }))}
        value={language}
        onChange={setLanguage}
      />
      <p className={styles.name}>
        {texts.signedInAs} <strong title={session.name}>{session.name}</strong>
      </p>
      {session.account_id !== null && <Button onPress={() => setChanging(true)}>{changePassword}</Button>}
      <Suspense>{isChanging && <PasswordDialog onClose={() => setChanging(false)} />}</Suspense>
      <Button onPress={() => signOut.mutate()}>{texts.signOut}</Button>
      {signOut.error && <Problem error={signOut.error} />}
      <p className={styles.version}>kith {session.version}</p>
    </div>
  )
}
