import { Link, Outlet, useNavigate, useRouterState } from '@tanstack/react-router'
import { lazy, Suspense, useEffect, useState } from 'react'
import type { EntitySearch } from '../entity/search.ts'
import { forgetVisits, noteVisit } from '../search/recent.ts'
import { Button } from '../ui/button.tsx'
import { NativeSelect } from '../ui/native-select.tsx'
import { Loading, Problem } from '../ui/page.tsx'
import { useWrite } from './client.ts'
import { KeysProvider, useShortcut } from './keys.tsx'
import { type Language, useLanguage, useMessages } from './language.tsx'
import { messages } from './messages.ts'
import { type NavigationPage, pagesOf } from './navigation.ts'
import { requestConsole, type Session, SessionProvider, useSession, useSessionQuery } from './session.tsx'
import styles from './shell.module.css'

const languageNames: Record<Language, string> = { en: 'English', de: 'Deutsch', it: 'Italiano' }

const PasswordDialog = lazy(() => import('./password-dialog.tsx'))
const KeysDialog = lazy(() => import('./keys-dialog.tsx'))
const SearchDialog = lazy(() => import('../search/search-dialog.tsx'))

/** The frame of all pages behind the sign-in: the navigation, and the name of the session. */
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

function Frame() {
  const texts = useMessages(messages)
  const session = useSession()
  const [isMenuOpen, setMenuOpen] = useState(false)
  const [dialog, setDialog] = useState<'keys' | 'search'>()
  const close = () => setDialog(undefined)
  const openSearch = () => setDialog('search')
  useShortcut('?', texts.listKeys, () => setDialog('keys'))
  useShortcut('/', texts.search, openSearch)
  useShortcut('Ctrl+k', texts.search, openSearch)
  useNotedVisits(session)
  useSameViewer(session)
  const path = useRouterState({ select: state => state.location.pathname })
  // biome-ignore lint/correctness/useExhaustiveDependencies: every change of the page closes the menu of a narrow window
  useEffect(() => setMenuOpen(false), [path])
  const allowed = pagesOf(session)
  return (
    <div className={styles.frame}>
      <a className={styles.skip} href="#main">
        {texts.skipToContent}
      </a>
      <aside className={styles.side}>
        <div className={styles.brand}>
          <img src="/console/icon.svg" alt="" width="26" height="26" />
          <strong>kith</strong>
          <span className="small clipped">{session.organization.key}</span>
          <button type="button" className={styles.searchButton} onClick={openSearch}>
            {texts.searchButton}
            <span aria-hidden="true">/</span>
          </button>
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
      <Suspense>
        {dialog === 'keys' && <KeysDialog onClose={close} />}
        {dialog === 'search' && <SearchDialog onClose={close} />}
      </Suspense>
    </div>
  )
}

/** Records the visited people and records for the search. */
function useNotedVisits(session: Session) {
  const address = useRouterState({
    select: ({ matches }) => {
      const { params = {}, search = {} } = (matches.at(-1) ?? {}) as { params?: EntityParams; search?: EntitySearch }
      const identifier = params.externalId ?? params.recordId
      return identifier && JSON.stringify({ owner: params.stackKey ?? 'people', identifier, by: search.by })
    },
  })
  useEffect(() => {
    if (address) noteVisit(session, JSON.parse(address))
  }, [address, session])
}

const viewerKey = 'kith.viewer'

/**
 * Reloads the page when another tab signs in to another account or organization. The tabs share the cookie, so this
 * page would show data of one organization and write to the other.
 */
function useSameViewer({ name, organization, role }: Session) {
  const viewer = JSON.stringify([organization.key, name, role])
  useEffect(() => {
    localStorage.setItem(viewerKey, viewer)
    const compare = ({ key, newValue }: StorageEvent) => {
      if (key === viewerKey && newValue !== null && newValue !== viewer) location.reload()
    }
    addEventListener('storage', compare)
    return () => removeEventListener('storage', compare)
  }, [viewer])
}

type EntityParams = { externalId?: string; stackKey?: string; recordId?: string }

function GoTo({ page }: { page: NavigationPage }) {
  const texts = useMessages(messages)
  const navigate = useNavigate()
  useShortcut(`g ${page.key}`, texts.goTo(texts[page.label]), () => navigate({ to: page.to }))
  return null
}

function Account({ session }: { session: Session }) {
  const texts = useMessages(messages)
  const { language, setLanguage } = useLanguage()
  const [isChanging, setChanging] = useState(false)
  // A new document holds no data that the session has read.
  const signOut = useWrite(() => requestConsole('DELETE', 'session'), {
    onSuccess: () => {
      forgetVisits()
      localStorage.removeItem(viewerKey)
      location.assign('/console/sign-in')
    },
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
      {session.account_id !== null && <Button onPress={() => setChanging(true)}>{texts.changePassword}</Button>}
      <Suspense>{isChanging && <PasswordDialog onClose={() => setChanging(false)} />}</Suspense>
      <Button onPress={() => signOut.mutate()}>{texts.signOut}</Button>
      {signOut.error && <Problem error={signOut.error} />}
      <p className="small">kith {session.version}</p>
    </div>
  )
}
