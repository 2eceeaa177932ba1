import { createRoot } from 'react-dom/client'
import './ui/base.css'
import { App } from './app/app.tsx'
import { dropInvalidLanguages } from './app/browser-languages.ts'
import { hideSignInCode } from './app/sign-in-code.ts'
import { nameAnnouncements } from './ui/announcements.ts'

hideSignInCode()
dropInvalidLanguages()
nameAnnouncements()
createRoot(document.getElementById('root')!).render(<App />)
