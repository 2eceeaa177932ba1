import { createRoot } from 'react-dom/client'
import './ui/base.css'
import { App } from './app/app.tsx'
import { dropInvalidLanguages } from './app/browser-languages.ts'
import { hideSignInCode } from './app/sign-in-code.ts'

hideSignInCode()
dropInvalidLanguages()
createRoot(document.getElementById('root')!).render(<App />)
