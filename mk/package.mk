# Packages. make deb: cairn, libcairn0, libcairn-dev and python3-cairn for Debian, in build/deb; make package-test tries them in a system
# of their own (mmdebstrap, root). make clients: the clients of the service for Python (a wheel) and TypeScript (npm), in build/clients.
.PHONY: deb package-test
DEB_TREE := build/deb/cairn-$(LIBRARY_VERSION)
# What git knows, copied, so that neither the tree nor what stands beside it is written to. Times come from debian/changelog.
deb:
	@./setup packages
	@rm -rf build/deb && mkdir -p $(DEB_TREE)
	@git ls-files -z | xargs -0 cp --parents -a -t $(DEB_TREE)
	@[ ! -e $(NPM_STAMP) ] || cp -a web/node_modules $(DEB_TREE)/web/
	@cd $(DEB_TREE) && { dpkg-buildpackage -b -us -uc >../build.log 2>&1 || { tail -n 40 ../build.log; exit 1; }; }
	@rm -rf $(DEB_TREE)
	@lintian --fail-on error,warning --tag-display-limit 0 --allow-root build/deb/*.changes
	@ls -l build/deb/*.deb

package-test:
	@ls build/deb/cairn_*.deb >/dev/null 2>&1 || $(MAKE) deb
	@test/package/deb_test build/deb

.PHONY: clients
clients: $(NPM_STAMP) library
	@mkdir -p build/clients && rm -rf build/clients/*.whl build/clients/*.tgz clients/typescript/dist
	@tools/wheel clients/python build/clients
	@strip --strip-debug -o build/clients/libcairn.so.$(SOVERSION) build/libcairn.so.$(SOVERSION)
	@tools/wheel bindings/python build/clients build/clients/libcairn.so.$(SOVERSION) && rm build/clients/libcairn.so.$(SOVERSION)
	@web/node_modules/.bin/tsc -p clients/typescript && cd clients/typescript && npm pack --silent --pack-destination ../../build/clients >/dev/null && rm -rf dist
	@ls -l build/clients/*.whl build/clients/*.tgz
